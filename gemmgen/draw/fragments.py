"""One thread's registers for one k: its values of A and of B, its accumulators, and the order of
its multiply-adds. Of tensor cores: one warp's fragments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gemmgen.draw.marks import (
    COMPUTE,
    LOAD,
    PLAIN,
    A,
    B,
    C,
    Cell,
    Drawing,
    Label,
    Mark,
    Meaning,
    Stroke,
)
from gemmgen.draw.multiply_adds import MultipliedElement, MultiplyAdds, multiply_adds
from gemmgen.draw.scene import Scene
from gemmgen.draw.wgmma import instruction_tiles, multiplies_in_place
from gemmgen.ir.atoms import ATOMS
from gemmgen.ir.buffers import Space
from gemmgen.ir.edit import contraction

_TALL = 32.0
_LEFT, _TOP = 176.0, 144.0
"""Where the accumulators begin: right of A's registers, below B's."""
_OPERAND, _BESIDE = 80.0, 64.0


def draw(scene: Scene) -> Drawing:
    """A's registers to the left, B's above, the accumulators where they meet, with the path of the
    multiply-adds."""
    if multiplies_in_place(scene):
        return instruction_tiles(scene)
    found = multiply_adds(scene)
    marks = [*_operands(scene, found), *_accumulators(scene, found)]
    whole = contraction(scene.main).atom != "fma"
    if not whole:
        marks += _shared_rows(scene, found)
    who = "a warp's fragments" if whole else "a thread's registers"
    title = f"{scene.kernel.emitted.name}: {who} for one k"
    width = max(320.0, _LEFT + _wide(found) * len(found.columns) + 16)
    height = _TOP + _TALL * len(found.rows) + 16
    text = _table(scene, found)
    return Drawing(title, _description(scene, found), width, height, tuple(marks), text)


def _wide(found: MultiplyAdds) -> float:
    """Pixels of an accumulator across: less where they would not fit the column."""
    return 48.0 if len(found.columns) <= 11 else 34.0


def _operands(scene: Scene, found: MultiplyAdds) -> Iterator[Mark]:
    """The registers, and lines along those that one access reads."""
    wide = _wide(found)
    yield Label(_LEFT - 24, _TOP - 16, _array(found.rows), "end")
    yield Label(_LEFT, _TOP - 84, _array(found.columns))
    for at, operand in enumerate(found.rows):
        y = _TOP + _TALL * at
        yield _register(scene, operand, A, (_BESIDE + 8, y, _OPERAND, _TALL))
    for at, operand in enumerate(found.columns):
        x = _LEFT + wide * at
        yield _register(scene, operand, B, (x, _TOP - 56, wide, _TALL))
    for first, last in _accesses(found.rows):
        line = (_BESIDE, _TOP + _TALL * first + 4), (_BESIDE, _TOP + _TALL * (last + 1) - 4)
        yield Stroke(line, LOAD, strong=True)
    for first, last in _accesses(found.columns):
        y = _TOP - 64
        line = (_LEFT + wide * first + 4, y), (_LEFT + wide * (last + 1) - 4, y)
        yield Stroke(line, LOAD, strong=True)


_STRIP = 16.0
"""Pixels across the row of a shared tile."""


def _shared_rows(scene: Scene, found: MultiplyAdds) -> Iterator[Mark]:
    """Row k of each shared tile, with the elements that the thread reads."""
    for side, letter, meaning in _sides(scene, found):
        array = side[0].word.array
        extent = scene.main.buffer(array).extent(letter)
        across = meaning is B
        whole = (_wide(found) if across else _TALL) * len(side)
        x, y = (_LEFT, 20.0) if across else (20.0, _TOP)
        size = (whole, _STRIP) if across else (_STRIP, whole)
        yield Cell(x, y, *size, PLAIN, "", f"row k of {array}: {extent} elements")
        for first, last in _runs([operand.indices[letter] for operand in side]):
            at, part = whole * first / extent, whole * (last + 1 - first) / extent
            place = (x + at, y, part, _STRIP) if across else (x, y + at, _STRIP, part)
            yield Cell(*place, meaning, "", f"{array}: {letter} {first}..{last}", strong=True)
        said = f"row k of {array}: {extent} elements"
        yield Label(x, 10 if across else y - 72, said, size="small", quiet=True)


def _runs(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The first and the last of each run of consecutive numbers."""
    first = 0
    for at, number in enumerate(numbers):
        if at + 1 == len(numbers) or numbers[at + 1] != number + 1:
            yield numbers[first], number
            first = at + 1


def _sides(
    scene: Scene, found: MultiplyAdds
) -> Iterator[tuple[Sequence[MultipliedElement], str, Meaning]]:
    """Operands that are read from shared memory, with their letter of C."""
    for operands, letter, meaning in (
        (found.rows, scene.problem.m, A),
        (found.columns, scene.problem.n, B),
    ):
        array = operands[0].word.array
        if scene.main.has(array) and scene.main.buffer(array).space is Space.SHARED:
            yield operands, letter, meaning


def _array(operands: Sequence[MultipliedElement]) -> str:
    """The array whose elements are multiplied."""
    register = operands[0].register
    return register.partition("[")[0] if register else operands[0].word.array


def _register(
    scene: Scene,
    operand: MultipliedElement,
    meaning: Meaning,
    at: tuple[float, float, float, float],
) -> Cell:
    where = ", ".join(_range(scene, *index) for index in operand.indices.items())
    letter = scene.problem.m if meaning is A else scene.problem.n
    about = f"{operand.register or 'read'}: {operand.word.array}[{where}]"
    text = f"{letter} {operand.indices[letter]}"
    return Cell(*at, meaning, text, about)


def _range(scene: Scene, letter: str, first: int) -> str:
    """A fragment of tensor cores has several of each letter."""
    atom = ATOMS[contraction(scene.main).atom]
    problem = scene.problem
    size = {problem.m: atom.m, problem.n: atom.n, problem.k: atom.k}.get(letter, 1)
    return f"{letter} {first}" if size == 1 else f"{letter} {first}..{first + size - 1}"


def _accesses(operands: Sequence[MultipliedElement]) -> Iterator[tuple[int, int]]:
    """The first and the last of neighbours that one access reads."""
    first = 0
    for at, operand in enumerate(operands):
        if at + 1 == len(operands) or operands[at + 1].word.access != operand.word.access:
            yield first, at
            first = at + 1


def _accumulators(scene: Scene, found: MultiplyAdds) -> Iterator[Mark]:
    """The accumulators, the path through their middles, and their numbers in its order."""
    problem, wide = scene.problem, _wide(found)
    middles: list[tuple[float, float]] = []
    for number, (row, column) in enumerate(found.order):
        m, n = found.rows[row].indices[problem.m], found.columns[column].indices[problem.n]
        where = f"{_range(scene, problem.m, m)}, {_range(scene, problem.n, n)}"
        about = f"multiply-add {number}: {problem.c.name}[{where}]"
        x, y = _LEFT + wide * column, _TOP + _TALL * row
        yield Cell(x, y, wide, _TALL, C, "", about)
        middles.append((x + wide / 2, y + _TALL * 0.7))
    if len(middles) > 1:
        yield Stroke(tuple(middles), COMPUTE, arrow=True)
    for number, (x, y) in enumerate(middles):
        yield Label(x - wide / 2 + 4, y - _TALL * 0.7 + 8, str(number), size="small")


def _table(scene: Scene, found: MultiplyAdds) -> str:
    """Registers and accumulators in characters: the accumulators by the numbers of their
    multiply-adds."""
    m, n = scene.problem.m, scene.problem.n
    numbers = {place: str(number) for number, place in enumerate(found.order)}
    rows = [f"{m} {operand.indices[m]}" for operand in found.rows]
    columns = [f"{n} {operand.indices[n]}" for operand in found.columns]
    wide = max(map(len, columns)) + 2
    first = max(len(_array(found.rows)), *map(len, rows))
    lines = [" " * first + "  " + _array(found.columns)]
    lines.append(_array(found.rows).ljust(first) + "".join(x.rjust(wide) for x in columns))
    for at, row in enumerate(rows):
        cells = (numbers.get((at, column), ".") for column in range(len(columns)))
        lines.append(row.ljust(first) + "".join(x.rjust(wide) for x in cells))
    return "\n".join(lines)


def _description(scene: Scene, found: MultiplyAdds) -> str:
    count, contract = len(found.order), contraction(scene.main)
    sides = (found.rows, found.columns)
    if contract.atom != "fma":
        step = ATOMS[contract.atom].k
        a, b = (f"{len(side)} of {side[0].word.array}" for side in sides)
        return (
            f"For {step} elements along k a warp loads fragments, {a} and {b}, and multiplies "
            f"{count} pairs of them on tensor cores, in the order of their numbers."
        )
    a, b = (_read(side) for side in sides)
    if count == 1:
        return f"For each k a thread reads {a} and {b}, for 1 multiply-add."
    order = "" if contract.order == "rows" else f" ({contract.order})"
    return (
        f"For each k a thread reads {a} and {b}, for {count} multiply-adds, "
        f"in the order of their numbers{order}."
    )


def _read(operands: Sequence[MultipliedElement]) -> str:
    """``8 elements of A_shared in 2 accesses of 4``."""
    count, accesses = len(operands), len(list(_accesses(operands)))
    width = operands[0].word.width
    what = "1 element" if count == 1 else f"{count} elements"
    text = f"{what} of {operands[0].word.array}"
    if width * accesses != count:
        return f"{text}, of {width} that an access reads along k"
    if width == 1:
        return text
    return f"{text} in {accesses} {'access' if accesses == 1 else 'accesses'} of {width}"
