"""The fastest schedules against cuBLAS, as measured by ``benchmarks/against_cublas.py``."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from gemmgen_docs import schedules
from gemmgen_docs.markdown import cell, code, table

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import default_path
import shares
import tensor_shares

NAMED = len(default_path.NAMED)
"""The first rows of the default path's measurements: shapes that were not drawn."""
COLUMNS = {
    "tile": ("tile",),
    "warp's share": ("warp_tile",),
    "thread's share": ("register_block", "tensor_core"),
    "padded": ("pad",),
    "blocks": ("raster", "split_k"),
}
"""The parameters in which the fastest schedules differ, and their directives."""


def grid() -> str:
    """The cases in several storage orders: shares, and both TFLOP/s."""
    found = shares.grid(shares.read())
    rows = [
        [
            next(line for line in row if line).spelled(),
            *(_both(line) if line else "" for line in row),
            " to ".join(sorted({f"{line.target:.0%}" for line in row if line})),
        ]
        for row in found.rows
    ]
    header = ("extents", *map(_stacked, found.orders), "target")
    return table(header, rows, right=range(len(header)))


def others() -> str:
    """The other cases."""
    rows = [
        (
            cell(line.what),
            line.spelled().replace(" ", "&nbsp;"),
            f"{line.ms * 1000:,.1f}",
            f"{line.tflops():.1f}",
            _linked(line),
            f"{line.target:.0%}",
        )
        for line in shares.others(shares.read())
    ]
    header = ("", "extents", "us", "TFLOP/s", "of cuBLAS", "target")
    return table(header, rows, right=range(1, len(header)))


def about() -> str:
    """The GPU and the date of the measurement."""
    return shares.about(shares.read())


def tensor_cores() -> str:
    """The section of schedules for tensor cores; empty until they are measured."""
    lines = tensor_shares.measured()
    if not lines:
        return ""
    return f"## On tensor cores\n\n{tensor_shares.table(lines)}\n{tensor_shares.note(lines)}\n"


def wmma() -> str:
    """The speed of f16 by WMMA beside that of f32, at 4096."""
    lines = [x for x in shares.read() if x.spelled() == "4096"]
    (f16,) = (x for x in lines if "f16" in x.schedule)
    (f32,) = (x for x in lines if x.schedule == "large_mk_kn")
    ratio = f16.tflops() / f32.tflops()
    return (
        f"At 4096 f16 by WMMA reaches {f16.tflops():.1f} TFLOP/s, {ratio:.1f} times the "
        f"{f32.tflops():.1f} of f32 by multiply-adds."
    )


def short() -> str:
    """A sentence about the cases below their targets, or that there are none."""
    lines = [line for line in shares.read() if line.is_short()]
    if not lines:
        return "Nothing is below its target."
    lines_below = [
        f"- **{line.spelled()}, {code(line.storage())}**: {line.share:.1%} of a target of "
        f"{line.target:.0%}, {line.tflops():.1f} TFLOP/s against cuBLAS's {line.rival():.1f}"
        for line in lines
    ]
    return f"{shares.SHORT} Below {_their(lines)}:\n\n" + "\n".join(lines_below) + "\n"


def _their(lines: Sequence[shares.Line]) -> str:
    return "its target" if len(lines) == 1 else "their targets"


def orders(extents: str) -> str:
    """One row of the grid, transposed: both TFLOP/s in each storage order."""
    (row,) = (
        [line for line in row if line]
        for row in shares.grid(shares.read()).rows
        if next(line for line in row if line).spelled() == extents
    )
    kinds: dict[str, Callable[[shares.Line], float]] = {
        "gemmgen": shares.Line.tflops,
        "cuBLAS": shares.Line.rival,
    }
    rows = [[name, *(f"{speed(line):.1f}" for line in row)] for name, speed in kinds.items()]
    header = (f"TFLOP/s at {extents}", *(_stacked(line.storage()) for line in row))
    return table(header, rows, right=range(1, len(header)))


def parts() -> str:
    """The parameters of the fastest schedules."""
    rows = []
    for name in _names():
        found = schedules.statements(schedules.text(f"best/{name}"))
        cells = [_arguments(found, names) for names in COLUMNS.values()]
        rows.append([f"[{name}](../cublas.md#{name})", *cells, *_staged(found)])
    return table(("schedule", *COLUMNS, "stages", "copied by"), rows, right=(len(COLUMNS) + 1,))


def _staged(statements: Sequence[str]) -> tuple[str, str]:
    """The number of stages, and the kind of copies."""
    stages = [int(x) for line in statements for x in re.findall(r"\bstages=(\d+)", line)]
    return str(max(stages, default=2)), _arguments(statements, ("async_copy",)) or "registers"


def _arguments(statements: Sequence[str], names: Sequence[str]) -> str:
    """The arguments of these directives' statements."""
    said = [" ".join(x.split()[1:]) for x in statements if schedules.directive(x) in names]
    return "<br>".join(map(code, said))


def listed() -> str:
    """Each of these schedules, under its name."""
    return "\n".join(f"### {name}\n\n{schedules.schedule(f'best/{name}')}" for name in _names())


def _names() -> list[str]:
    return list(dict.fromkeys(line.schedule for line in shares.read()))


def _stacked(storage: str) -> str:
    """Two tensors under each other, for the head of a column."""
    return "<br>".join(map(code, storage.replace("] ", "]\n").splitlines()))


def _linked(line: shares.Line) -> str:
    return f"[{line.percent()}](#{line.schedule})"


def _both(line: shares.Line) -> str:
    return f"{_linked(line)}<br>{line.tflops():.1f}&nbsp;:&nbsp;{line.rival():.1f}"
