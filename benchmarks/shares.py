"""Tables of the results of ``against_cublas.py --json``: a grid of storage orders, and other cases.

docs/performance.md and docs/cublas.md have both; they are generated.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Protocol

from gemmgen.gpu.setup import Setup, described

ROOT = Path(__file__).parents[1]
BEST = ROOT / "examples" / "best"
DATA = ROOT / "docs" / "data" / "cublas.json"
BEGIN, END = "<!-- cublas -->", "<!-- /cublas -->"
SHORT = "†"


@dataclass(frozen=True)
class Line:
    """One schedule at one shape: milliseconds, and the rival's time over it.

    Clock and versions are those of ``gemmgen.gpu.setup``; older files have none.
    """

    what: str
    schedule: str
    shape: str
    ms: float
    share: float
    target: float
    checked: bool
    gpu: str
    date: str = ""
    clock: int | None = None
    driver: str = ""
    cuda: str = ""
    cublas: str = ""

    def extents(self) -> dict[str, int]:
        """The sizes by their names, as a kernel takes them."""
        return {name: int(size) for name, size in (x.split("=") for x in self.shape.split())}

    def spelled(self) -> str:
        """The sizes: one for a cube, else all."""
        sizes = list(self.extents().values())
        if len(sizes) == 3 and len(set(sizes)) == 1:
            return str(sizes[0])
        return " x ".join(map(str, sizes))

    def tflops(self) -> float:
        """Multiplications and additions per second, in 10^12."""
        return 2 * prod(self.extents().values()) / self.ms / 1e9

    def rival(self) -> float:
        """The same for cuBLAS."""
        return self.tflops() / self.share

    def is_short(self) -> bool:
        """Whether its share is below its target."""
        return self.share < self.target

    def percent(self) -> str:
        """Its share of cuBLAS's speed; a wrong result has none."""
        if not self.checked:
            return "wrong"
        return f"{self.share:.1%}{SHORT if self.is_short() else ''}"

    def storage(self) -> str:
        """The inputs as the schedule has them: ``A[m, k] B[k, n]``."""
        text = (BEST / f"{self.schedule}.sched").read_text(encoding="utf-8")
        found = re.search(r"^gemm\s+[^=]*=\s*(.*?)\s*$", text, re.M)
        assert found is not None, f"{self.schedule} has no gemm line"
        return found.group(1).replace(" * ", " ")


def read(path: Path = DATA) -> tuple[Line, ...]:
    """The lines of a file."""
    return tuple(Line(**row) for row in json.loads(path.read_text(encoding="utf-8")))


@dataclass(frozen=True)
class Grid:
    """Cases that were measured in several storage orders: a row for each, a column per order."""

    orders: tuple[str, ...]
    rows: tuple[tuple[Line | None, ...], ...]


def grid(lines: Sequence[Line]) -> Grid:
    """Those of ``lines`` with several storage orders at their shape, the smallest extents first."""
    cases = {(line.what, line.shape): _company(line, lines) for line in lines}
    several = [case for case in cases.values() if len(case) > 1]
    orders = tuple(dict.fromkeys(line.storage() for case in several for line in case))
    rows = [[{line.storage(): line for line in case}.get(x) for x in orders] for case in several]
    return Grid(orders, tuple(sorted(map(tuple, rows), key=_size)))


def _company(line: Line, lines: Sequence[Line]) -> list[Line]:
    return [x for x in lines if (x.what, x.shape) == (line.what, line.shape)]


def _size(row: Sequence[Line | None]) -> int:
    return max(prod(line.extents().values()) for line in row if line is not None)


def others(lines: Sequence[Line]) -> tuple[Line, ...]:
    """The lines that are the only ones at their shape."""
    return tuple(line for line in lines if len(_company(line, lines)) == 1)


class Measured(Protocol):
    """What every kind of line says of its measurement."""

    @property
    def gpu(self) -> str: ...
    @property
    def date(self) -> str: ...
    @property
    def clock(self) -> int | None: ...
    @property
    def driver(self) -> str: ...
    @property
    def cuda(self) -> str: ...
    @property
    def cublas(self) -> str: ...


def about(lines: Sequence[Measured]) -> str:
    """The GPU, its clock, the versions of the libraries, and the date."""
    gpus, days = ({getattr(x, part) for x in lines} - {""} for part in ("gpu", "date"))
    versions = described(Setup(x.clock, x.driver, x.cuda, x.cublas) for x in lines)
    on = f"On an {' and an '.join(sorted(gpus))}{f' ({versions})' if versions else ''}"
    return ", ".join([on, *sorted(days)])


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]], right: range) -> str:
    """A Markdown table; columns in ``right`` hold numbers."""
    rule = ["---:" if at in right else "---" for at in range(len(header))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (header, rule, *rows)) + "\n"


def page_block(lines: Sequence[Line]) -> str:
    """The tables of docs/performance.md, with their marks."""
    found = grid(lines)
    rows = [
        [next(x for x in row if x).spelled(), *(x.percent() if x else "" for x in row)]
        for row in found.rows
    ]
    table = markdown(["extents", *found.orders], rows, range(len(found.orders) + 1))
    alone = [
        [line.what, line.spelled(), line.percent(), f"{line.tflops():.1f}"]
        for line in others(lines)
    ]
    rest = markdown(["another case", "extents", "of cuBLAS", "TFLOP/s"], alone, range(1, 4))
    short = f"{SHORT} below its target. " if any(map(Line.is_short, lines)) else ""
    note = f"{about(lines)}, all results checked: `python benchmarks/against_cublas.py`. {short}"
    return f"{BEGIN}\n{table}\n{rest}\n{note.strip()}\n{END}"


def replaced(text: str, block: str, marks: tuple[str, str] = (BEGIN, END)) -> str:
    """``text`` with the marks and what is between them replaced by ``block``."""
    before, begin, rest = text.partition(marks[0])
    _, end, after = rest.partition(marks[1])
    if not begin or not end:
        raise SystemExit(f"no marks for the table: a line {marks[0]}, then a line {marks[1]}")
    return before + block + after
