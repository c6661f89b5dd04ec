"""The six versions and the three sizes, as tables: counted, and measured as far as files are there.

``data/versions.json`` and ``data/sizes.json`` are what these commands print:

    gemmgen ladder examples/versions/*.sched --size 2048 --json
    gemmgen ladder examples/sizes/*.sched --size 256 --size 512 ... --json
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gemmgen_docs import commands, measured
from gemmgen_docs.markdown import cell, code, table


@dataclass(frozen=True)
class Group:
    """Examples of one folder, compared at ``size``; ``file`` has their measurements."""

    folder: str
    names: tuple[str, ...]
    size: int
    file: str


VERSIONS = Group(
    "versions", ("v1", "v2", "v3", "v4", "v5", "v6", "v6_corrected"), 2048, "versions.json"
)
SIZES = Group("sizes", ("small", "medium", "large"), 4096, "sizes.json")


def rows(group: Group) -> Sequence[measured.Row]:
    """The measurements of a group and of cuBLAS, and the schedules that were refused (with an
    ``error``); none if the file is not there."""
    path = measured.DATA / group.file
    found: list[measured.Row] = (
        json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    )
    return [row for row in found if row.get("ms") is not None or "error" in row]


def counted(group: Group) -> str:
    """A line for each: reads, what bounds it, and how fast it can be at most."""
    header = ("", "global reads", "reads of shared memory", "bound by", "at most, TFLOP/s")
    lines = [(name, *_counted(group, name)) for name in group.names]
    return table(header, lines, right=(2, 4))


def _counted(group: Group, name: str) -> tuple[str, ...]:
    found = explained(group, name)
    formulas: list[Mapping[str, Any]] = [x for x in found["formulas"] if x["name"] in READS]
    shared = [f"{x['counted']:,}" for x in formulas if x["name"] == "shared reads"]
    reads = [x["formula"] for x in formulas if x["name"] != "shared reads"][-1]
    for letter, side in zip(("BM", "BN"), _tile(group, name), strict=True):
        reads = reads.replace(letter, side)
    roofline = found["roofline"]
    best = f"{roofline['attainable_flops'] / 1e12:,.1f}"
    return code(reads), shared[-1] if shared else "", roofline["binding"], best


UNMEASURED = "not measured yet"
READS = ("global reads of A and B", "shared reads")


def _tile(group: Group, name: str) -> tuple[str, str]:
    """The sides of the block's tile, as the emitted text has them."""
    text = commands.run(f"gemmgen emit examples/{group.folder}/{name}.sched").out
    line = next(line for line in text.splitlines() if line.startswith("constexpr int BM = "))
    words = line.replace(",", "").replace(";", "").split()
    return words[words.index("BM") + 2], words[words.index("BN") + 2]


@functools.cache
def explained(group: Group, name: str) -> Mapping[str, Any]:
    """The figures of ``gemmgen explain`` for one of them."""
    line = f"gemmgen explain examples/{group.folder}/{name}.sched --shape {group.size} --json"
    ran = commands.run(line)
    assert ran.exit_code == 0, ran.err
    return json.loads(ran.out)


def timed(group: Group) -> str:
    """The measurements: a line for each and a column for each size, in percent of cuBLAS; with a
    single size its time and speed as well.  Empty if nothing was measured."""
    every = rows(group)
    found = [row for row in every if "error" not in row]
    if not found:
        return ""
    sizes = sorted({row["shape"]["M"] for row in found})
    names = list(dict.fromkeys(row["name"] for row in found))
    lines = [(name, *_line(found, name, sizes)) for name in sorted(names, key=_cublas_last)]
    lines += [(name, UNMEASURED) for name in group.names if name not in names]
    header = [""]
    for size in sizes:
        header += [f"ms, {size}", "TFLOP/s"] if len(sizes) == 1 else []
        header += [f"of cuBLAS, {size}"]
    note = f"\nMeasured on an {measured.on(found)}, f32, by `gemmgen ladder`.\n"
    refused = [
        f"\nRefused: {row['name']} ({cell(row['error'])}).\n" for row in every if row not in found
    ]
    return "".join([table(header, lines, right=range(1, len(header))), note, *refused])


def _cublas_last(name: str) -> bool:
    return name.startswith("cuBLAS")


def _line(found: Sequence[measured.Row], name: str, sizes: Sequence[int]) -> list[str]:
    at = {row["shape"]["M"]: row for row in found if row["name"] == name}
    cells: list[str] = []
    for size in sizes:
        row = at.get(size)
        if len(sizes) == 1:
            cells += ["", ""] if row is None else [f"{row['ms']:.3f}", f"{row['tflops']:.2f}"]
        cells.append("" if row is None else measured.share(row))
    return cells
