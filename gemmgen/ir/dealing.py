"""How many of a block's threads share a row of a tile that they copy together."""

from __future__ import annotations

from gemmgen.target import WARP

TURNED = 8
"""Threads along a row whose elements go to a column: 32 bytes in a row, a sector, are read together,
and a warp's four rows are four neighbours in shared memory."""
LEAST = 8


def threads_along(
    rows: int, pieces: int, threads: int, *, straight: bool, asynchronous: bool
) -> int:
    """Threads beside each other on a row of ``pieces``; ``pieces`` where each has one of its own.

    An asynchronous copy of few bytes is one instruction, and so would be each of its addresses.
    So the threads along a longer row are few, and each takes several pieces of the row, a constant
    distance apart: a warp where what it reads together lies together in shared memory too
    (``straight``), else ``TURNED``.
    """
    if not asynchronous:
        return pieces
    most = WARP if straight else TURNED
    if pieces <= most:
        return pieces
    for along in range(most, LEAST - 1, -1):
        if pieces % along == 0 and threads % along == 0 and rows % (threads // along) == 0:
            return along
    return pieces
