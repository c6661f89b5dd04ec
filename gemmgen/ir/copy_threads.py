"""How many of a block's threads share a row of a tile that they copy together."""

from __future__ import annotations

from gemmgen.ir.dtypes import ACCESS, BYTES, DType
from gemmgen.ir.target import WARP

TRANSPOSED = 16
"""Threads along a row that is stored to a column.  8 were slower, with all else equal: 0.94 of
cuBLAS instead of 0.99 at 1024 on an NVIDIA H200, with a B[n, k] laid out as B[k, n]."""
LEAST = 8
"""Fewer would read parts of sectors."""


def is_narrow(width: int, dtype: DType) -> bool:
    """Whether a copy of ``width`` elements is narrower than the widest access."""
    return width * BYTES[dtype] < ACCESS


def threads_along(rows: int, pieces: int, threads: int, *, straight: bool, narrow: bool) -> int:
    """Adjacent threads along a row of ``pieces``; ``pieces`` if each thread has one.

    A tile has many ``narrow`` asynchronous copies, of less than 16 bytes, and computing an address
    for each would take more instructions.  So the threads along a longer row are few, and each
    copies several pieces of the row at a constant distance: a warp if the tile keeps the order of
    global memory (``straight``), else ``TRANSPOSED``.
    """
    if not narrow:
        return pieces
    most = WARP if straight else TRANSPOSED
    if pieces <= most:
        return pieces
    for along in range(most, LEAST - 1, -1):
        if pieces % along == 0 and threads % along == 0 and rows % (threads // along) == 0:
            return along
    return pieces
