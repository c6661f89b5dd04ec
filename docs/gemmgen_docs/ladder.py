"""The ladder: a rung's schedule, what it changes, what bounds it, and what was measured."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gemmgen.examples import PERCENTAGES
from gemmgen_docs import commands, schedules
from gemmgen_docs.markdown import cell, difference, fence, folded
from gemmgen_docs.markdown import table as markdown_table

BEFORE = {
    "naive": None,
    "uncoalesced": "naive",
    "tiled": "naive",
    "coalesced": "tiled",
    "double_buffered": "coalesced",
    "register_blocked": "double_buffered",
    "fused": "register_blocked",
    "vectorized": "fused",
    "warp_tiled": "vectorized",
}
"""Each rung and the one it is compared with; ``uncoalesced`` is a step down from ``naive``."""

MEASURED = Path(__file__).parents[1] / "data" / "ladder.json"
"""What ``gemmgen ladder --json`` printed on a machine with a GPU."""

SHAPE = "4096"
WHOLE = 10_000
"""Lines of context: a program's difference shows all of it."""


def rung(name: str) -> str:
    """The generated part of a rung's page."""
    before = BEFORE[name]
    parts = ["## Schedule\n", schedules.schedule(name)]
    if before is None:
        parts += ["## Program\n", fence(schedules.program(name))]
        parts += ["## CUDA C\n", fence(schedules.kernel(name), "cuda")]
    else:
        parts += [
            f"## What changes in the program, from {_called(before)}\n",
            difference(schedules.program(before), schedules.program(name), WHOLE),
            f"## What changes in the CUDA C, from {_called(before)}\n",
            difference(schedules.kernel(before), schedules.kernel(name), 2),
        ]
    parts += [schedules.cuda(name), _limits(name), _measured(name)]
    return "\n".join(parts)


def _called(name: str) -> str:
    return f"`{name}`"


@functools.cache
def explained(name: str) -> Mapping[str, Any]:
    """The figures of ``gemmgen explain`` for an example."""
    ran = commands.run(f"gemmgen explain examples/{name}.sched --shape {SHAPE} --json")
    assert ran.exit_code == 0, ran.err
    return json.loads(ran.out)


def _can_explain() -> bool:
    return commands.exists("gemmgen explain")


def _limits(name: str) -> str:
    if not _can_explain():
        return ""
    line = f"gemmgen explain examples/{name}.sched --shape {SHAPE}"
    roofline = explained(name)["roofline"]
    bounds = sorted(roofline["bounds"], key=lambda bound: -bound["seconds"])
    rows = [
        (
            f"**{bound['name']}**" if bound["name"] == roofline["binding"] else bound["name"],
            f"{bound['seconds'] * 1e3:,.3f}",
            f"{explained(name)['flops'] / bound['seconds'] / 1e12:,.1f}",
            cell(bound["how"]),
        )
        for bound in bounds
    ]
    return "\n".join(
        [
            "## What limits it\n",
            f"{_binding(name)}\n",
            markdown_table(("", "at least, ms", "at most, TFLOP/s", "how"), rows, right=(1, 2)),
            folded("All figures, counted", commands.output(line)),
        ]
    )


def _binding(name: str) -> str:
    roofline = explained(name)["roofline"]
    attainable, peak = roofline["attainable_flops"] / 1e12, roofline["peak_flops"] / 1e12
    return (
        f"At 4096 x 4096 x 4096 on an NVIDIA H200 the tightest bound is that of "
        f"**{roofline['binding']}**: {attainable:.1f} of {peak:.1f} TFLOP/s could be reached at "
        f"the most. The counts are exact; latency, which these bounds leave out, costs the rest."
    )


@functools.cache
def measured() -> tuple[Mapping[str, Any], ...]:
    """The rows of the data file; none where there is no file."""
    if not MEASURED.exists():
        return ()
    return tuple(json.loads(MEASURED.read_text(encoding="utf-8")))


def _rows(name: str) -> list[Mapping[str, Any]]:
    return [row for row in measured() if row["name"] == name and row["ms"] is not None]


def _measured(name: str) -> str:
    found = _rows(name)
    if not found:
        return ""
    rows = [
        (
            " x ".join(str(size) for size in row["shape"].values()),
            f"{row['ms']:.3f}",
            f"{row['tflops']:.2f}",
            _share(row),
            "yes" if row["checked"] else "**no**",
        )
        for row in found
    ]
    header = ("shape", "ms", "TFLOP/s", "of cuBLAS", "result right")
    told = f"On an {found[0]['gpu']}, f32, interleaved with cuBLAS, medians; "
    told += f"{_documents(name)}\n"
    return f"## Measured\n\n{told}\n{markdown_table(header, rows, right=(1, 2, 3))}"


def _documents(name: str) -> str:
    share = PERCENTAGES.get(name)
    if share is None:
        return "the documents give no figure for this kernel."
    return f"the documents say {share}% of cuBLAS (1024, RTX 3080)."


def _share(row: Mapping[str, Any]) -> str:
    return "" if row["share"] is None else f"{row['share']:.1%}"


def table() -> str:
    """All rungs side by side."""
    header = ["rung", "what is new", "the documents' share of cuBLAS"]
    right = [2]
    if _can_explain():
        header += ["global reads", "bound by", "at most, TFLOP/s"]
        right.append(5)
    sizes = sorted({max(row["shape"].values()) for name in BEFORE for row in _rows(name)})
    right += range(len(header), len(header) + len(sizes))
    header += [f"of cuBLAS, {size}" for size in sizes]
    rows = [_line(name, sizes) for name in BEFORE]
    told = ""
    if sizes:
        told = f"\nMeasured on an {_rows('naive')[0]['gpu']}, f32, by `gemmgen ladder`.\n"
    return markdown_table(header, rows, right) + told


def _line(name: str, sizes: list[int]) -> list[str]:
    share = PERCENTAGES.get(name)
    line = [f"[{name}]({name}.md)", _new(name), f"{share}%" if share else ""]
    if _can_explain():
        figures = explained(name)
        reads = [f for f in figures["formulas"] if f["name"].startswith("global reads")][-1]
        bound = figures["roofline"]["binding"]
        line += [f"`{reads['formula']}`", bound.replace(" ", "&nbsp;")]
        line.append(f"{figures['roofline']['attainable_flops'] / 1e12:.1f}")
    at = {max(row["shape"].values()): _share(row) for row in _rows(name)}
    return line + [at.get(size, "") for size in sizes]


def _new(name: str) -> str:
    """The statements that the rung before does not have, as code."""
    before = BEFORE[name]
    known = set(_statements(before)) if before else set()
    return ", ".join(
        f"`{' '.join(line.split())}`" for line in _statements(name) if line not in known
    )


def _statements(name: str) -> list[str]:
    lines = schedules.text(name).splitlines()
    return [line for line in lines if line and not line.startswith("#")]
