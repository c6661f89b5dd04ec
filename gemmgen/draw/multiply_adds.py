"""A thread's multiply-adds at its first k, in their order, and where their operands come from."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gemmgen.base.record import record
from gemmgen.draw.recorded import Values, dense, position
from gemmgen.draw.scene import Scene
from gemmgen.draw.tracing import Trace, trace
from gemmgen.ir.edit import fragment_of, tile_of
from gemmgen.ir.problem import Tensor

Place = tuple[str, int]
"""An array, and an element's number in its memory."""


@record
class ReadWord:
    """An element of global or shared memory, and the number of the access that reads it, which
    reads ``width`` of them."""

    array: str
    address: int
    access: int
    width: int


@record
class MultipliedElement:
    """``register`` is its name, empty where multiply-adds read memory themselves; ``indices`` are
    those of the element ``word`` by the letters of its tensor, in the order of its array."""

    register: str
    word: ReadWord
    indices: Mapping[str, int]


@record
class MultiplyAdds:
    """``rows`` are the registers of A and ``columns`` those of B; ``order`` has the positions (row,
    column) of the sums in the order of the multiply-adds.  Of tensor cores all are fragments."""

    rows: tuple[MultipliedElement, ...]
    columns: tuple[MultipliedElement, ...]
    order: tuple[tuple[int, int], ...]


def multiply_adds(scene: Scene) -> MultiplyAdds:
    """The multiply-adds of thread 0 of the first block, until an accumulator occurs again."""
    values = dense(scene, scene.least())
    traced = trace(scene, values)
    words, pairs = _followed(scene, traced)
    sides = [sorted({pair[side] for pair in pairs}) for side in (0, 1)]
    rows, columns = (
        tuple(_operand(scene, values, tensor, traced, place, words[place]) for place in places)
        for tensor, places in zip((scene.problem.a, scene.problem.b), sides, strict=True)
    )
    return MultiplyAdds(
        rows, columns, tuple((sides[0].index(a), sides[1].index(b)) for a, b in pairs)
    )


def source_of(scene: Scene, tensor: Tensor) -> str:
    """The array that multiply-adds read."""
    held = fragment_of(scene.main, tensor.name) or tile_of(scene.main, tensor.name)
    return held.name if held else tensor.name


def _followed(
    scene: Scene, traced: Trace
) -> tuple[dict[Place, ReadWord], list[tuple[Place, Place]]]:
    """The sources of the operands of multiply-adds, and the pairs of operands in order. A written
    value is the one that was read last. A multiply-add reads an element of each operand, then its
    accumulator, unless that is a variable: then it is the thread's only one.
    """
    sources = {source_of(scene, tensor) for tensor in (scene.problem.a, scene.problem.b)}
    registers: dict[Place, ReadWord] = {}
    words: dict[Place, ReadWord] = {}
    held: list[ReadWord] = []
    read: list[Place] = []
    pairs: list[tuple[Place, Place]] = []
    sums: set[int] = set()
    for number, access in enumerate(traced.accesses):
        places = [(access.array, access.first + e) for e in range(access.width)]
        if access.write:
            registers.update(zip(places, held, strict=False))
            held = held[access.width :]
            continue
        if access.array == "acc":
            if access.first in sums:
                return words, pairs[: len(sums)]
            sums.add(access.first)
            continue
        if access.array in traced.sizes:
            held = [registers[place] for place in places if place in registers]
        else:
            held = [ReadWord(*place, number, access.width) for place in places]
        if access.array in sources:
            read.append(places[0])
            words.setdefault(places[0], held[0])
        if len(read) == 2:
            pairs.append((read[0], read[1]))
            read.clear()
            if "acc" not in traced.sizes:
                return words, pairs
    return words, pairs


def _operand(
    scene: Scene, values: Values, tensor: Tensor, traced: Trace, place: Place, word: ReadWord
) -> MultipliedElement:
    array, at = place
    indices = (
        position(scene, tensor, values, word.address)
        if word.array == tensor.name
        else _in_tile(scene, word)
    )
    register = ""
    if array in traced.sizes:
        numbers = np.unravel_index(at, traced.sizes[array])
        register = array + "".join(f"[{int(number)}]" for number in numbers)
    return MultipliedElement(register, word, indices)


def _in_tile(scene: Scene, word: ReadWord) -> dict[str, int]:
    """The indices of an element of a tile in shared memory."""
    tile = scene.main.buffer(word.array)
    array = next(x for x in scene.kernel.lowered.shared if x.name == word.array)
    *outer, row, column = (int(x) for x in np.unravel_index(word.address, array.sizes))
    if tile.swizzle is not None:
        column = tile.swizzle.column(row, column)
    if tile.atom_width:
        column += outer[-1] * tile.atom_width
    return dict(zip(tile.letters, (row, column), strict=True))
