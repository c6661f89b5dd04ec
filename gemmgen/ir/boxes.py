"""The boxes in which the copy engine (TMA) copies a tile into shared memory, and out of it.

A box lies there row by row with no gaps, at a multiple of 128 bytes.  So a box of whole rows lies
as the tile does, and a tile with rows longer than a box is copied row by row.
"""

from __future__ import annotations

from gemmgen.ir.buffers import AxisSpread, Buffer
from gemmgen.ir.dtypes import BYTES
from gemmgen.ir.tensor_map import LANDS_AT, LONGEST_SIDE


def box_of(tile: Buffer, together: int | None = None) -> tuple[int, int] | None:
    """Rows and columns of the largest boxes that cover the tile in shared memory; None if none do.

    Of a slice of the output so many rows ``together`` are neighbours in the matrix, too.
    """
    outer, inner = tile.letters
    rows, columns, size = tile.extent(outer), tile.extent(inner), BYTES[tile.dtype]
    together = rows if together is None else together
    if columns <= LONGEST_SIDE:
        return next(
            (
                (side, columns)
                for side in range(min(together, LONGEST_SIDE), 0, -1)
                if together % side == 0 and (side == rows or side * columns * size % LANDS_AT == 0)
            ),
            None,
        )
    return next(
        (
            (1, side)
            for side in range(LONGEST_SIDE, 0, -1)
            if columns % side == 0 and side * size % LANDS_AT == 0
        ),
        None,
    )


def rows_together(axis: AxisSpread) -> int:
    """Rows of a slice of the output (a row for each thread along ``axis``) that are neighbours in
    the matrix, from each multiple of that many on."""
    if axis.registers == 1:
        return axis.threads
    return axis.lanes if axis.width == 1 else 1
