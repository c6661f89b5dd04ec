"""How many of a block's threads share a row of a tile that they copy together."""

from __future__ import annotations

from gemmgen.ir.dtypes import ACCESS, BYTES, DType
from gemmgen.ir.target import WARP

TURNED = 16
"""Threads along a row whose elements go to a column.  8 were slower where all else fits: 0.94 of
cuBLAS in place of 0.99 at 1024 on an NVIDIA H200, with a B[n, k] laid out as B[k, n]."""
LEAST = 8
"""Fewer would read parts of sectors."""


def is_narrow(width: int, dtype: DType) -> bool:
    """Is a copy of ``width`` elements less than the widest access?"""
    return width * BYTES[dtype] < ACCESS


def threads_along(rows: int, pieces: int, threads: int, *, straight: bool, narrow: bool) -> int:
    """Threads beside each other on a row of ``pieces``; ``pieces`` where each has one of its own.

    A ``narrow`` asynchronous copy, of less than 16 bytes, is one instruction of many, and computing
    its address would be more of them.  So the threads along a longer row are few, and each takes
    several pieces of the row, a constant distance apart: a warp where what it reads together lies
    together in shared memory too (``straight``), else ``TURNED``.
    """
    if not narrow:
        return pieces
    most = WARP if straight else TURNED
    if pieces <= most:
        return pieces
    for along in range(most, LEAST - 1, -1):
        if pieces % along == 0 and threads % along == 0 and rows % (threads // along) == 0:
            return along
    return pieces
