"""The boxes in which TMA copies an operand's tile, and their places in shared memory.

All of it is recorded: the rows that are read, and the elements from which on boxes are written.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gemmgen.analyze.accesses import Rows, SeeBoxes, Site
from gemmgen.analyze.analyzed_kernel import AnalyzedKernel
from gemmgen.analyze.copied_tiles import Position
from gemmgen.analyze.launch_arguments import arguments_of
from gemmgen.analyze.recorder import record_accesses
from gemmgen.analyze.whole_tiles import boxed_tiles, k_step, whole_tiles
from gemmgen.base.record import record
from gemmgen.ir.buffers import Swizzle
from gemmgen.ir.clusters import sharers
from gemmgen.ir.dtypes import BYTES
from gemmgen.ir.edit import tile_of
from gemmgen.ir.interface import Interface
from gemmgen.ir.problem import Tensor


@record
class CopiedBox:
    """``rows`` times ``columns`` elements of the tile from ``at`` on; they lie row after row
    from the element ``place`` of the stage on.  ``block`` of the cluster requests it."""

    at: Position
    rows: int
    columns: int
    place: int
    block: int = 0


@record
class BoxedTile:
    """The tile of ``tensor`` that block 0 has copied for the first step along k; boxes that blocks
    of its cluster ask for, for all of them, are in the order of their ranks.

    ``letters`` name the rows and columns of the matrix and of the array alike, ``shape`` their
    extents in the tile; ``size`` is the bytes of an element, ``stages`` how many tiles the array
    holds.  A tile of ``parts`` is one of each part, in memory and in the array, and the boxes are
    those of the first: those of the others lie a plane, or a tile, further on.  ``source`` is what
    is read.
    """

    tensor: str
    letters: tuple[str, str]
    shape: tuple[int, int]
    array: str
    size: int
    stages: int
    boxes: tuple[CopiedBox, ...]
    source: str
    parts: int = 1
    swizzle: Swizzle | None = None

    @property
    def bytes(self) -> int:
        """Bytes of the tile with all of its terms, which the barrier of its stage expects."""
        return self.parts * self.size * self.shape[0] * self.shape[1]


def copied_boxes(kernel: AnalyzedKernel) -> tuple[BoxedTile, ...]:
    """The tiles of the operands that TMA copies to shared memory."""
    problem, interface = kernel.program.problem, kernel.lowered.interface
    values = arguments_of(interface, problem, whole_tiles(kernel, 1))
    seen: list[list[tuple[Site, Rows]]] = []
    for rank in range(interface.cluster_blocks):
        own: list[tuple[Site, Rows]] = []
        seen.append(own)
        record_accesses(
            kernel.lowered,
            np.full(1, rank, np.int64),
            values,
            lambda site, index, mask: None,
            see_boxes=_append_to(own),
        )
    return tuple(
        _tile(kernel, tensor, seen, *_source(interface, tensor.name, values))
        for tensor in (problem.a, problem.b)
        if (tile := tile_of(kernel.program.main, tensor.name)) and tile.name in boxed_tiles(kernel)
    )


def _source(interface: Interface, tensor: str, values: Mapping[str, float]) -> tuple[str, int]:
    """The source of a tensor's boxes, and its row pitch in elements."""
    counts = {name: int(value) for name, value in values.items()}
    for param in interface.split:
        if param.planes is not None and param.planes.source == tensor:
            return param.name, interface.plane_values(counts)[param.planes.pitch]
    return tensor, counts[dict(interface.pitch)[tensor]]


def _append_to(seen: list[tuple[Site, Rows]]) -> SeeBoxes:
    return lambda site, rows: seen.append((site, rows))


def _tile(
    kernel: AnalyzedKernel,
    tensor: Tensor,
    seen: list[list[tuple[Site, Rows]]],
    source: str,
    pitch: int,
) -> BoxedTile:
    buffer = tile_of(kernel.program.main, tensor.name)
    assert buffer is not None
    name = buffer.name
    ranks = sharers(kernel.program.main.work, buffer)
    of_each = [(rank, *one) for rank in ranks for one in seen[rank]]
    read, written = (
        [(rows, rank) for rank, site, rows in of_each if (site.buffer, site.write) == wanted]
        for wanted in ((source, False), (name, True))
    )
    row, column = kernel.program.problem.matrix(tensor.letters)
    shape = buffer.extent(row), buffer.extent(column)
    every = [
        _box(rows, target, pitch, rank)
        for (rows, rank), (target, _) in zip(read, written, strict=True)
    ]
    boxes = tuple(box for box in every if box.place < shape[0] * shape[1])
    assert len(every) == buffer.parts * len(boxes), every
    assert sum(box.rows * box.columns for box in boxes) == shape[0] * shape[1], boxes
    assert (buffer.letters[-2:], k_step(kernel) in shape) == ((row, column), True), buffer
    return BoxedTile(
        tensor.name,
        (row, column),
        shape,
        name,
        BYTES[buffer.dtype],
        buffer.stages,
        boxes,
        source,
        buffer.parts,
        buffer.swizzle,
    )


def _box(source: Rows, target: Rows, pitch: int, block: int) -> CopiedBox:
    (place,) = set(target.first.tolist())  # the same in each block that it goes to
    columns = int(source.length[0])
    at = divmod(int(source.first[0]), pitch)
    return CopiedBox(at, len(source.first), columns, place, block)
