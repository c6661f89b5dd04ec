"""The registers of a thread's multiply-adds and their banks, read from the machine code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from gemmgen.analyze.resources import architecture
from gemmgen.base.errors import UsageError
from gemmgen.base.record import record
from gemmgen.draw.marks import CONFLICT, Cell, Drawing, Label, Mark, thread
from gemmgen.draw.scene import Scene
from gemmgen.gpu import sass, sass_loops
from gemmgen.gpu.compiler import compile_text
from gemmgen.gpu.register_banks import (
    MULTIPLY_ADD,
    Banks,
    banks_of,
    conflicts,
    has_conflict,
    sources,
)

_WIDE, _TALL, _LEFT, _TOP = 48.0, 24.0, 80.0, 72.0


@record
class DrawnMultiplyAdd:
    """The registers of an instruction: both operands and the accumulator; ``conflicts``: three
    fetches from one bank."""

    operands: tuple[int, int]
    accumulator: int
    conflicts: bool


def draw(scene: Scene) -> Drawing:
    """The first multiply-add of each accumulator: its operands as rows and columns, its register
    where they meet.

    Raises ``UsageError`` for a kernel whose main loop has no multiply-adds of single registers,
    ``CannotCheck`` if nothing here compiles, or reads machine code.
    """
    arch = architecture(scene.kernel.emitted.schedule, scene.gpu)
    body = sass_loops.main_loop(
        sass.disassemble(compile_text(scene.kernel.emitted.text, arch).cubin)
    )
    if body is None or not sass.count(body, MULTIPLY_ADD):
        raise UsageError(
            f"--what registers: the main loop has no {MULTIPLY_ADD}, whose registers are drawn; "
            "--what fragments draws the operands of tensor cores"
        )
    banks = banks_of(arch)
    found = list(_first_of_each(body, banks))
    rows, columns = _sides(found)
    marks = list(_marks(found, rows, columns, banks))
    width = max(480.0, _LEFT + _WIDE * len(columns) + 16)
    height = _TOP + _TALL * len(rows) + 16
    return Drawing(
        f"{scene.kernel.emitted.name}: the registers of a thread's multiply-adds, {arch}",
        _description(body, banks),
        width,
        height,
        tuple(marks),
        _table(found, rows, columns),
    )


def _first_of_each(body: sass.Code, banks: Banks) -> Iterator[DrawnMultiplyAdd]:
    seen: set[int] = set()
    for before, instruction in pairwise((body[-1], *body)):
        if not instruction.is_a(MULTIPLY_ADD):
            continue
        read = [source[0] for source in sources(instruction) if source is not None]
        if len(read) == 3 and read[2] not in seen:
            seen.add(read[2])
            conflict = has_conflict(instruction, before, banks)
            yield DrawnMultiplyAdd((read[0], read[1]), read[2], conflict)


def _sides(found: Sequence[DrawnMultiplyAdd]) -> tuple[list[int], list[int]]:
    """The operands of one matrix as rows and of the other as columns, so that registers that are
    multiplied with each other are on different sides."""
    side: dict[int, int] = {}
    for one in found:
        left, right = one.operands
        if left not in side and right not in side:
            side[left] = 0
        for here, there in ((left, right), (right, left)):
            if here in side:
                side.setdefault(there, 1 - side[here])
    rows, columns = ([r for r in sorted(side) if side[r] == number] for number in (0, 1))
    return (rows, columns) if len(rows) <= len(columns) else (columns, rows)


def _place(
    one: DrawnMultiplyAdd, rows: Sequence[int], columns: Sequence[int]
) -> tuple[int, int] | None:
    """Row and column; None if both operands are on one side."""
    left, right = one.operands
    if left in rows and right in columns:
        return rows.index(left), columns.index(right)
    if right in rows and left in columns:
        return rows.index(right), columns.index(left)
    return None


def _marks(
    found: Sequence[DrawnMultiplyAdd], rows: Sequence[int], columns: Sequence[int], banks: Banks
) -> Iterator[Mark]:
    def bank(register: int, x: float, y: float) -> Cell:
        number = register % banks.count
        about = f"R{register}: bank {number}"
        return Cell(x, y, _WIDE - 4, _TALL - 4, thread(number), f"R{register}", about)

    for number in range(banks.count):
        yield Cell(8 + 88 * number, 8, 16, 16, thread(number))
        yield Label(30 + 88 * number, 16, f"bank {number}", size="small")
    yield Cell(8 + 88 * banks.count, 8, 16, 16, CONFLICT, strong=True)
    yield Label(30 + 88 * banks.count, 16, "conflict", size="small")
    for at, register in enumerate(columns):
        yield bank(register, _LEFT + at * _WIDE, _TOP - _TALL - 4)
    for at, register in enumerate(rows):
        yield bank(register, _LEFT - _WIDE - 8, _TOP + at * _TALL)
    for one in found:
        place = _place(one, rows, columns)
        if place is not None:
            row, column = place
            box = (_LEFT + column * _WIDE, _TOP + row * _TALL, _WIDE - 4, _TALL - 4)
            meaning = CONFLICT if one.conflicts else thread(one.accumulator % banks.count)
            about = f"R{one.accumulator} += R{one.operands[0]} * R{one.operands[1]}"
            yield Cell(*box, meaning, f"R{one.accumulator}", about, strong=one.conflicts)


def _table(found: Sequence[DrawnMultiplyAdd], rows: Sequence[int], columns: Sequence[int]) -> str:
    """Accumulators in characters; ``!``: a conflict."""
    at = {place: one for one in found if (place := _place(one, rows, columns)) is not None}
    lines = ["     " + "".join(f"R{register}".rjust(6) for register in columns)]
    for row, register in enumerate(rows):
        cells = (at.get((row, column)) for column in range(len(columns)))
        texts = (
            "" if x is None else f"{'!' if x.conflicts else ''}R{x.accumulator}" for x in cells
        )
        lines.append(f"R{register}".ljust(5) + "".join(text.rjust(6) for text in texts))
    return "\n".join(line.rstrip() for line in lines)


def _description(body: sass.Code, banks: Banks) -> str:
    count = sass.count(body, MULTIPLY_ADD)
    fetches = "three registers" if banks.ports == 2 else "two registers"
    return (
        f"{conflicts(body, banks)} of {count} {MULTIPLY_ADD} fetch {fetches} of one bank, a clock "
        f"more each. Drawn: the first {MULTIPLY_ADD} of each accumulator, by the registers of its "
        "operands; colors are banks."
    )
