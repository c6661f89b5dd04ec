"""The boxes in which TMA copies a tile into shared memory, and out of it.

A box lies there row by row with no gaps, at a multiple of 128 bytes.  So a box of whole rows lies
as the tile does, and a tile with rows longer than a box is copied row by row.

TMA may permute the chunks of 16 bytes of rows with 32, 64 or 128 bytes, as bits of their
addresses say: of 128 bytes the chunk's number (bits 4 to 6) ^ the row's (bits 7 to 9), of 64 bytes
bits 4 and 5 ^ bits 7 and 8, of 32 bytes bit 4 ^ bit 7.  That is a ``Swizzle`` of the tile if it
begins where the pattern does, at a multiple of 8 rows.  Longer rows are cut into atom columns,
each a box or several.
"""

from __future__ import annotations

from dataclasses import replace
from math import gcd

from gemmgen.ir.buffers import Buffer, Spread, Swizzle, slice_height
from gemmgen.ir.dtypes import BYTES, DType
from gemmgen.ir.tensor_map import ALIGNMENT, LANDS_AT, LONGEST_SIDE, REPEATS, SWIZZLES

SPANS = tuple(span for span in SWIZZLES if span)
"""Bytes of the rows that TMA permutes."""


def tma_swizzle(columns: int, dtype: DType) -> Swizzle | None:
    """How TMA permutes rows of this many elements; None if it can't."""
    span, chunk = columns * BYTES[dtype], ALIGNMENT // BYTES[dtype]
    if span not in SPANS:
        return None
    by = span // ALIGNMENT
    return Swizzle(by, REPEATS // by, chunk)


def atom_width_of(columns: int, dtype: DType) -> int | None:
    """The longest rows that TMA permutes into which rows of this many elements are cut; None
    if there are none."""
    size = BYTES[dtype]
    spans = (span for span in SPANS if columns * size % span == 0)
    return max((span // size for span in spans), default=None)


def permuted(tile: Buffer) -> Buffer | None:
    """``tile`` with its rows as TMA permutes them, in atom columns if they are longer; None if it
    can't."""
    columns = tile.extent(tile.letters[-1])
    atom_width = atom_width_of(columns, tile.dtype)
    if atom_width is None:
        return None
    pattern = tma_swizzle(atom_width, tile.dtype)
    return replace(tile, atom_width=atom_width if atom_width < columns else 0, swizzle=pattern)


def with_type(tile: Buffer, dtype: DType) -> Buffer:
    """``tile`` of other elements, whose rows are permuted by TMA if they have been."""
    plain = replace(tile, dtype=dtype, atom_width=0, spare=0, swizzle=None)
    return permuted(plain) or plain if tile.swizzle else plain


def span_of(tile: Buffer) -> int:
    """The bytes of a tile's rows, if they are permuted; else 0."""
    return tile.row * BYTES[tile.dtype] if tile.swizzle else 0


def lands_at(tile: Buffer) -> int:
    """Bytes: the boxes of a tile begin at their multiples in shared memory."""
    return max(LANDS_AT, REPEATS * span_of(tile))


def spare_rows(tile: Buffer) -> int:
    """The fewest unused rows after each atom column of each stage for which every atom column
    starts where a TMA box may: 4 rows of 128 swizzled bytes take 1,024 bytes, 4 rows of them
    unused."""
    if tile.atom_columns * tile.stages == 1:
        return 0
    lands = lands_at(tile)
    unit = lands // gcd(lands, tile.row * BYTES[tile.dtype])
    return -tile.extent(tile.letters[0]) % unit


def spaced(tile: Buffer) -> Buffer:
    """``tile`` with the ``spare_rows`` that its atom columns and stages need."""
    return replace(tile, spare=spare_rows(tile))


def box_of(tile: Buffer, together: int | None = None) -> tuple[int, int] | None:
    """Rows and columns of the largest boxes that cover the tile in shared memory; None if none do.

    Of a slice of the output this many rows ``together`` are neighbours in the matrix, too.
    """
    outer, inner = tile.letters
    rows, columns, size = (
        tile.extent(outer),
        tile.atom_width or tile.extent(inner),
        BYTES[tile.dtype],
    )
    together = rows if together is None else together
    lands = lands_at(tile)
    if columns <= LONGEST_SIDE:
        return next(
            (
                (side, columns)
                for side in range(min(together, LONGEST_SIDE), 0, -1)
                if together % side == 0 and (side == rows or side * columns * size % lands == 0)
            ),
            None,
        )
    return next(
        (
            (1, side)
            for side in range(LONGEST_SIDE, 0, -1)
            if columns % side == 0 and side * size % lands == 0
        ),
        None,
    )


def rows_together(spread: Spread, outer: str) -> int:
    """Rows of a slice of the output that are neighbours in the matrix, from each multiple of that
    many on."""
    axis, height = spread.axis(outer), slice_height(spread, outer)
    if axis.registers == height:
        return axis.threads * height
    return axis.lanes * height if axis.width == 1 or height > 1 else 1
