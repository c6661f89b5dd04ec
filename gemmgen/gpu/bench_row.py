"""The rows of ``bench`` and ``ladder``, as a table and as JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from rich.table import Table

from gemmgen.base.record import record
from gemmgen.gpu.rivals import is_rival
from gemmgen.gpu.setup import Setup, described
from gemmgen.gpu.timing import Verdict

COLUMNS = (
    *("ms", "quartiles", "TFLOP/s", "of cuBLAS", "of the best"),
    *("over floor", "W", "MHz", "checked"),
)
"""Of the table, after the kernel and its shape; the best is the better of cuBLAS and cublasLt."""


@record
class BenchRow:
    """One kernel at one shape; ``ms`` is None if it couldn't be called, and ``note`` says why.

    ``lower`` and ``upper`` are quartiles.  ``share`` is cuBLAS's time over this one's, for the same
    storage orders, and cublasLt's where cuBLAS has no call; None without a comparable call.
    ``verdict`` compares the two, ties under 1%.  ``of_best`` is the same of the best of cuBLAS
    and cublasLt.  ``floor`` is the least time that the GPU's arithmetic rate and memory bandwidth
    allow.  ``checked``: the result left by the timed launches was right.  ``setup``: the clock
    right after them, and the versions of the libraries.  ``power`` in watts and ``sm_clock`` in MHz
    are medians of what was read while this one's samples ran.
    """

    name: str
    shape: tuple[tuple[str, int], ...]
    ms: float | None
    lower: float | None
    upper: float | None
    tflops: float | None
    share: float | None
    verdict: Verdict | None
    floor: float
    checked: bool
    gpu: str
    note: str = ""
    setup: Setup = Setup()
    of_best: float | None = None
    power: float | None = None
    sm_clock: int | None = None


def as_json(rows: Sequence[BenchRow]) -> list[dict[str, object]]:
    """``rows`` as plain dictionaries, the shape as one too; clock and versions are fields."""
    found: list[dict[str, object]] = []
    for row in rows:
        fields: dict[str, object] = dataclasses.asdict(row)
        del fields["setup"]
        found.append({**fields, "shape": dict(row.shape), **dataclasses.asdict(row.setup)})
    return found


def measured_on(rows: Sequence[BenchRow]) -> str:
    """``NVIDIA H200 (SM clock 1980 MHz, driver 580.95.05, CUDA 13.0, cuBLAS 13.1.0)``."""
    about = described(row.setup for row in rows)
    return rows[0].gpu + (f" ({about})" if about else "")


def table(rows: Sequence[BenchRow]) -> Table:
    """``rows`` for a terminal."""
    found = Table(title=measured_on(rows) if rows else None)
    for name in ("kernel", "shape"):
        found.add_column(name)
    for name in COLUMNS:
        found.add_column(name, justify="right")
    for row in rows:
        shape = "x".join(str(size) for _, size in row.shape)
        if row.ms is None or row.lower is None or row.upper is None or row.tflops is None:
            found.add_row(row.name, shape, *("-" for _ in COLUMNS[1:]), row.note)
            continue
        tie = " (tie)" if row.verdict == "tie" and not is_rival(row.name) else ""
        found.add_row(
            row.name,
            shape,
            f"{row.ms:.4f}",
            f"{row.lower:.4f}-{row.upper:.4f}",
            f"{row.tflops:.2f}",
            _cell(row.share, ".3f") + tie,
            _cell(row.of_best, ".3f"),
            f"{row.ms / row.floor:.2f}" if row.floor else "",
            _cell(row.power, ".0f"),
            _cell(row.sm_clock, "d"),
            "yes" if row.checked else f"WRONG: {row.note}" if row.note else "no",
        )
    return found


def _cell(value: float | None, how: str) -> str:
    """A number; blank if it is not known."""
    return "" if value is None else format(value, how)
