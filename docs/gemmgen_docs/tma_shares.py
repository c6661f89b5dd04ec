"""Shares of cuBLAS of schedules whose tiles TMA copies, from ``data/tma_shares.toml``.

``PYTHONPATH=docs python -m gemmgen_docs.tma_shares`` prints the table of docs/performance.md.
"""

from __future__ import annotations

import functools
import tomllib
from dataclasses import dataclass
from pathlib import Path

from gemmgen_docs.markdown import table

DATA = Path(__file__).parents[1] / "data" / "tma_shares.toml"
BEGIN, END = "<!-- tma shares -->", "<!-- /tma shares -->"


@dataclass(frozen=True)
class Measured:
    """A schedule at M = N = K = ``extents``: cuBLAS's time over its own.  ``changed`` replaces
    its directive of that name; ``cp_async`` is the share of the fastest copies by threads."""

    extents: int
    schedule: str
    share: float
    gpu: str
    driver: str
    cuda: str
    changed: str = ""
    cp_async: float | None = None


@functools.cache
def read() -> tuple[Measured, ...]:
    """All that was measured."""
    rows = tomllib.loads(DATA.read_text(encoding="utf-8"))["measured"]
    return tuple(Measured(**row) for row in rows)


def fastest() -> str:
    """The fastest schedule of each size, beside the fastest whose threads copy."""
    rows = [
        (
            str(row.extents),
            f"`{row.schedule}`",
            f"{row.share:.1%}",
            f"{row.cp_async:.1%}",
            f"{row.gpu}, {row.driver}, {row.cuda}",
        )
        for row in read()
        if row.cp_async is not None
    ]
    header = ("extents", "schedule", "of cuBLAS", "by cp.async", "GPU, driver, CUDA")
    return table(header, rows, right=(0, 2, 3))


def share(schedule: str, extents: int, changed: str = "") -> str:
    """One share in percent."""
    wanted = schedule, extents, changed
    (row,) = (row for row in read() if (row.schedule, row.extents, row.changed) == wanted)
    return f"{row.share:.1%}"


def page_block() -> str:
    """The table of docs/performance.md, with its marks."""
    return f"{BEGIN}\n{fastest().strip()}\n{END}"


if __name__ == "__main__":
    print(page_block())
