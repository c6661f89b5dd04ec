"""A ladder's results as a table: columns aligned for a terminal, or Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING

from gemmgen.base.errors import UsageError
from gemmgen.cli.ladder_rungs import Rung

if TYPE_CHECKING:
    from gemmgen.gpu.bench_row import BenchRow

BEGIN, END = "<!-- ladder -->", "<!-- /ladder -->"
CUBLAS = "cuBLAS"

_WORDS = ("kernel", "global reads", "limited by")
Cells = list[list[str]]


def cells(
    rungs: Sequence[Rung], rows: Sequence[BenchRow], sizes: Sequence[int], limits: Mapping[str, str]
) -> Cells:
    """The heading, a line per rung, and cuBLAS; times are those of the last size, ``limits`` has
    what bounds each kernel at that size."""
    last = sizes[-1]
    documented = any(rung.documents is not None for rung in rungs)
    heading = [_WORDS[0], *(f"of cuBLAS, {size}" for size in sizes)]
    heading += [f"ms, {last}", "TFLOP/s", *_WORDS[1:]]
    found = [[*heading, *(["published"] if documented else [])]]
    at = {(row.name, _size(row)): row for row in rows}
    for rung in rungs:
        line = [rung.name, *(_share(at.get((rung.name, size))) for size in sizes)]
        line += [*_speed(at.get((rung.name, last))), rung.reads, limits.get(rung.name, "-")]
        if documented:
            line.append("" if rung.documents is None else f"{rung.documents}%")
        found.append(line)
    for row in rows:
        if row.name.startswith(CUBLAS) and _size(row) == last:
            line = [CUBLAS, *("100%" for _ in sizes), *_speed(row), "", ""]
            found.append(line + ([""] if documented else []))
            break
    return found


def with_refused(table: Cells, refused: Sequence[tuple[str, str]]) -> Cells:
    """``table`` with a line for each refused schedule: its name, and why."""
    lines = [[name, f"refused: {why}"] for name, why in refused]
    return [*table, *(line + [""] * (len(table[0]) - 2) for line in lines)]


def as_text(table: Cells) -> str:
    """Columns separated by two blanks; words aligned left, numbers right."""
    heading = table[0]
    full = [line for line in table if not line[1].startswith("refused: ")]
    widths = [max(map(len, column)) for column in zip(*full, strict=True)]
    widths[0] = max(len(line[0]) for line in table)
    lines: list[str] = []
    for line in table:
        if line not in full:
            lines.append(f"{line[0].ljust(widths[0])}  {line[1]}")
            continue
        aligned = (
            cell.ljust(width) if name in _WORDS else cell.rjust(width)
            for name, cell, width in zip(heading, line, widths, strict=True)
        )
        lines.append("  ".join(aligned).rstrip())
    return "\n".join(lines) + "\n"


def as_markdown(table: Cells, gpu: str) -> str:
    """The table between its marks, with the GPU (its clock, the versions) and the date."""
    heading, *lines = table
    rule = ["---" if name in _WORDS else "---:" for name in heading]
    body = "\n".join("| " + " | ".join(line) + " |" for line in (heading, rule, *lines))
    about = f"Square matrices, f32, on an {gpu}, {date.today().isoformat()}: `gemmgen ladder`."
    return f"{BEGIN}\n{body}\n\n{about}\n{END}\n"


def check_marks(text: str, name: str) -> None:
    """Raises ``UsageError`` unless ``text`` has the marks of one table."""
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(END) < text.index(BEGIN):
        raise UsageError(f"{name} has no marks for the table: a line {BEGIN}, then a line {END}")


def replaced(text: str, table: str) -> str:
    """``text`` with the marks and what is between them replaced by ``table``."""
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    return before + table.rstrip("\n") + after


def _size(row: BenchRow) -> int:
    return row.shape[0][1]


def _share(row: BenchRow | None) -> str:
    if row is None or row.ms is None:
        return "-"
    if not row.checked:
        return "wrong"
    return "" if row.share is None else f"{100 * row.share:.1f}%"


def _speed(row: BenchRow | None) -> tuple[str, str]:
    if row is None or row.ms is None or row.tflops is None:
        return "-", "-"
    return f"{row.ms:.3f}", f"{row.tflops:.1f}"
