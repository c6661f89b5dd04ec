"""The boxes in which the copy engine (TMA) copies a tile into shared memory.

A box lands row by row with no gaps, at a multiple of 128 bytes.  So a box of whole rows lies as the
tile does, and a tile with rows longer than a box is copied row by row.
"""

from __future__ import annotations

from gemmgen.ir.buffers import Buffer
from gemmgen.ir.dtypes import BYTES
from gemmgen.ir.tensor_map import LANDS_AT, LONGEST_SIDE


def box_of(tile: Buffer) -> tuple[int, int] | None:
    """Rows and columns of the largest boxes that cover the tile in shared memory; None if none
    do."""
    outer, inner = tile.letters
    rows, columns, size = tile.extent(outer), tile.extent(inner), BYTES[tile.dtype]
    if columns <= LONGEST_SIDE:
        return next(
            (
                (side, columns)
                for side in range(min(rows, LONGEST_SIDE), 0, -1)
                if rows % side == 0 and (side == rows or side * columns * size % LANDS_AT == 0)
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
