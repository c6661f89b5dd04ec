"""Tables of the results of ``tensor_cores.py --json``, for docs/performance.md and docs/cublas.md.

Winners of ``gemmgen tune`` at the same shapes (``tuned.json``) are lines of them, too.  There is no
table without the file.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from shares import ROOT, about, markdown

DATA = ROOT / "docs" / "data" / "tensor_cores.json"
TUNED = DATA.with_name("tuned.json")
TUNE = "gemmgen tune"
"""What the lines of ``TUNED`` are called."""
SUGGEST = "suggest"
"""The name of what ``suggest`` writes."""
BEGIN, END = MARKS = "<!-- tensor_cores -->", "<!-- /tensor_cores -->"
IN_ROWS = "A[m, k] * B[n, k]"
"""Both operands along k."""
COMMAND = "python benchmarks/tensor_cores.py"
HEADER = ("inputs", "extents", "schedule", "of cuBLAS", "of best", "TFLOP/s", "W")


@dataclass(frozen=True)
class Line:
    """A schedule at one shape (M, N, K), or a rival, whose ``schedule`` is its library's name.

    ``share``: the time of ``rival`` over its own, cuBLAS's where it has a call for the types;
    ``of_best``: that of the faster of cuBLAS and cublasLt.  Clock and versions are those of
    ``gemmgen.gpu.setup``; ``power`` and ``sm_clock`` were read while the samples ran.  ``text`` is
    the schedule as it was timed, since a file of that name may have another one later.
    """

    what: str
    schedule: str
    types: str
    product: str
    shape: tuple[int, int, int]
    ms: float
    tflops: float
    rival: str
    share: float | None
    of_best: float | None
    power: float | None
    sm_clock: int | None
    checked: bool
    note: str
    gpu: str
    date: str = ""
    clock: int | None = None
    driver: str = ""
    cuda: str = ""
    cublas: str = ""
    text: str = ""

    def is_rival(self) -> bool:
        """Whether it is a library's line."""
        return self.schedule in ("cuBLAS", "cublasLt")

    def spelled(self) -> str:
        """The extents: one for a cube, else all."""
        return " x ".join(map(str, self.shape[:1] if len(set(self.shape)) == 1 else self.shape))

    def inputs(self) -> str:
        """What it is, and the storage orders: ``fp8, A[m, k] B[n, k]``."""
        return f"{self.what}, {self.product.replace(' * ', ' ')}"

    def is_for_the_page(self) -> bool:
        """docs/performance.md has one storage order, and two of the squares."""
        is_square = len(set(self.shape)) == 1
        return self.product == IN_ROWS and (not is_square or self.shape[0] in (4096, 8192))

    def cells(self) -> tuple[str, ...]:
        """Its row of a table, as ``HEADER`` has the columns."""
        of_cublas = self.share if self.rival == "cuBLAS" else None
        shares = (_percent(of_cublas), _percent(self.of_best)) if self.checked else ("wrong", "")
        power = "" if self.power is None else f"{self.power:.0f}"
        return (self.inputs(), self.spelled(), self.schedule, *shares, f"{self.tflops:.1f}", power)


def read(path: Path = DATA) -> tuple[Line, ...]:
    """The lines of a file; none without it."""
    if not path.exists():
        return ()
    rows = json.loads(path.read_text(encoding="utf-8"))
    return tuple(Line(**{**row, "shape": tuple(row["shape"])}) for row in rows)


def measured() -> tuple[Line, ...]:
    """The lines of both files."""
    lines = read()
    return (*lines, *tuned(lines))


def tuned(known: Sequence[Line], path: Path = TUNED) -> tuple[Line, ...]:
    """The winners of ``gemmgen tune`` for cases that are ``known``."""
    cases: dict[object, Line] = {}
    for line in known:
        cases.setdefault((_types(line.types), line.product, line.shape), line)
    data = json.loads(path.read_text(encoding="utf-8"))
    found: list[Line] = []
    for case in data["cases"]:
        product, shape = case["gemm"].partition(" = ")[2], tuple(case["shape"])
        like = cases.get((_types(case["dtype"]), product, shape))
        if like is None:
            continue
        us = case["schedules"][0][1]
        found.append(
            replace(
                like,
                schedule=TUNE,
                ms=us / 1e3,
                tflops=2 * math.prod(shape) / us / 1e6,
                rival="",
                share=None,
                of_best=case["vendor"] / us,
                power=None,
                sm_clock=None,
                date=data["date"],
            )
        )
    return tuple(found)


def _types(text: str) -> tuple[str, ...]:
    """``bf16 bf16 bf16`` and ``A=e4m3 B=e4m3 C=bf16`` as types."""
    types = tuple(each.rpartition("=")[2] for each in text.split())
    return types * 3 if len(types) == 1 else types


def best(lines: Iterable[Line]) -> tuple[Line, ...]:
    """The fastest right schedule of each case at each shape; a wrong one only if all are."""
    found: dict[tuple[object, ...], Line] = {}
    for line in lines:
        key = line.what, line.product, line.shape
        if line.is_rival():
            continue
        if key not in found or (found[key].checked, -found[key].ms) < (line.checked, -line.ms):
            found[key] = line
    return tuple(found.values())


def table(lines: Sequence[Line]) -> str:
    """The fastest schedules as Markdown."""
    return markdown(HEADER, [line.cells() for line in best(lines)], range(3, len(HEADER)))


def note(lines: Sequence[Line]) -> str:
    """Where and how it was measured."""
    checked = ", all results checked" if all(line.checked for line in best(lines)) else ""
    dates = sorted({line.date for line in best(lines) if line.schedule == TUNE})
    others = f" {TUNE}: its winner, of {dates[0]}, timed again beside the library." if dates else ""
    if any(line.schedule == SUGGEST for line in best(lines)):
        others = f" {SUGGEST}: what `gemmgen suggest` writes for the shape.{others}"
    return (
        f"{about(lines)}{checked}. *Best*: the faster of cuBLAS and cublasLt's fastest algorithm; "
        f"W: the GPU's power in the run.{others} `{COMMAND}`."
    )


def page_block(lines: Sequence[Line]) -> str:
    """The table of docs/performance.md, with its marks; these alone if there are no lines."""
    if not lines:
        return f"{BEGIN}\n{END}"
    said = "The fastest schedule of each case, for `A[m, k] B[n, k]`:"
    shown = [line for line in lines if line.is_for_the_page()]
    more = "[All cases](cublas.md#on-tensor-cores)."
    return f"{BEGIN}\n{said}\n\n{table(shown)}\n{note(lines)} {more}\n{END}"


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:.1%}"
