"""The thread that copies each element of an operand's tile, and the element's place in shared
memory.

All of it is recorded, nothing computed by formula: what a thread stores to a tile is what it loaded
for it, in that order.
"""

from __future__ import annotations

from collections.abc import Iterator

from gemmgen.analyze.analyzed_kernel import AnalyzedKernel
from gemmgen.analyze.launch_arguments import arguments_of
from gemmgen.analyze.recorder import first_block
from gemmgen.analyze.whole_tiles import boxed_tiles, k_step, staged_tiles, stages_of, whole_tiles
from gemmgen.base.record import record
from gemmgen.ir.buffers import Buffer
from gemmgen.ir.problem import Tensor
from gemmgen.numerics.operators import Ints

Position = tuple[int, int]
"""A row and a column."""


@record
class CopiedPiece:
    """``width`` adjacent elements of a row that ``thread`` copies in one access; ``at`` is the
    first one."""

    thread: int
    at: Position
    width: int


@record
class CopiedTile:
    """The tile of ``tensor`` that block 0 copies for the first step along k.

    ``rows`` and ``columns`` are the letters of the matrix as it is stored, ``shape`` their extents
    in the tile.  ``loads`` are positions there, ``stores`` positions in the array, whose rows of
    ``array_shape`` have their pads.  ``where`` has for each element of the tile that of the array.
    """

    tensor: str
    letters: tuple[str, str]
    shape: tuple[int, int]
    loads: tuple[CopiedPiece, ...]
    array: str
    array_letters: tuple[str, str]
    array_shape: tuple[int, int]
    stores: tuple[CopiedPiece, ...]
    where: tuple[tuple[Position, Position], ...]


@record
class _Access:
    """An access of one thread: its first element and the number of elements."""

    write: bool
    thread: int
    first: int
    width: int

    def elements(self) -> range:
        return range(self.first, self.first + self.width)


def copied_tiles(kernel: AnalyzedKernel) -> tuple[CopiedTile, ...]:
    """The tiles of the operands that threads copy to shared memory; those that TMA copies are left
    out."""
    problem = kernel.program.problem
    shape = whole_tiles(kernel, stages_of(kernel))
    values = arguments_of(kernel.lowered.interface, problem, shape)
    seen = first_block(kernel.lowered, values)
    pitch = dict(kernel.lowered.interface.pitch)
    found: list[CopiedTile] = []
    for name in staged_tiles(kernel):
        if name in boxed_tiles(kernel):
            continue
        tile = kernel.program.main.buffer(name)
        tensor = next(t for t in (problem.a, problem.b) if t.name == tile.tensor)
        accesses = [
            _Access(site.write, thread, int(first), site.width)
            for site, by_warp in seen
            if (site.buffer, site.write) in ((tensor.name, False), (name, True))
            for thread, first in _active(by_warp)
        ]
        found.append(_tile(kernel, tensor, tile, accesses, int(values[pitch[tensor.name]])))
    return tuple(found)


def _active(by_warp: Ints) -> Iterator[tuple[int, int]]:
    for thread, first in enumerate(by_warp.ravel().tolist()):
        if first >= 0:
            yield thread, first


def _tile(
    kernel: AnalyzedKernel, tensor: Tensor, buffer: Buffer, accesses: list[_Access], pitch: int
) -> CopiedTile:
    problem, name = kernel.program.problem, buffer.name
    array = next(a for a in kernel.lowered.shared if a.name == name)
    (_, length), step = array.sizes[-2:], k_step(kernel)
    row, column = problem.matrix(tensor.letters)
    k_axis = (row, column).index(problem.k)
    stage = array.sizes[-2] * length

    def is_first(element: int) -> bool:
        return divmod(element, pitch)[k_axis] < step

    loads = [a for a in accesses if not a.write and is_first(a.first)]
    moved, places = _queues(loads), _queues(a for a in accesses if a.write)
    where = {
        divmod(element, pitch): divmod(place % stage, length)
        for thread, elements in moved.items()
        for element, place in zip(elements, places[thread], strict=False)
    }
    kept = set(where.values())
    pieces = dict.fromkeys(
        CopiedPiece(a.thread, divmod(a.first % stage, length), a.width)
        for a in accesses
        if a.write and a.first < stage
    )
    return CopiedTile(
        tensor.name,
        (row, column),
        (buffer.extent(row), buffer.extent(column)),
        tuple(CopiedPiece(a.thread, divmod(a.first, pitch), a.width) for a in loads),
        name,
        (buffer.letters[-2], buffer.letters[-1]),
        (array.sizes[-2], length),
        tuple(piece for piece in pieces if piece.at in kept),
        tuple(sorted(where.items())),
    )


def _queues(accesses: Iterator[_Access] | list[_Access]) -> dict[int, list[int]]:
    """The elements that each thread accesses, in its order."""
    found: dict[int, list[int]] = {}
    for access in accesses:
        found.setdefault(access.thread, []).extend(access.elements())
    return found
