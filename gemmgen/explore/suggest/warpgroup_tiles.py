"""The tiles of C that plans for warpgroups consider: rows, columns, and how consumers share them.

Rows are multiples of the 64 of one wgmma, columns of 8.  A fixed choice of columns serves large
matrices.  Where the tiles of a matrix are few, what counts is how evenly they fill the
multiprocessors, so that columns also follow from the matrix: an equal share of it, or what lets the
blocks fill one, two, three or four waves.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil
from typing import Literal

from gemmgen.explore.warpgroup_cost import GROUP, HELD, THREADS, WHOLE
from gemmgen.ir.atoms import AtomTraits
from gemmgen.ir.occupancy import BESIDE_WGMMA, registers_at_launch

ACCUMULATORS = 192
"""The most registers of a thread for its accumulators and partial accumulators."""
COOPERATIVE = {
    (64, 1): (16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 256),
    (128, 1): (64, 128),
    (128, 2): (32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256),
    (192, 3): (32, 48, 64, 96, 128, 160, 192),
    (256, 2): (64, 96, 128, 160, 192),
}
"""Columns by rows and consumers: each consumer computes an equal share of the rows."""
PINGPONG = {64: (64, 96, 128, 192, 256), 128: (64, 80, 96, 112, 128, 144, 160, 176, 192)}
"""Columns by rows: each of two consumers computes a whole tile."""
FITTING = (
    (64, 1, False),
    (128, 2, False),
    (128, 1, False),
    (192, 3, False),
    (256, 2, False),
    (64, 2, True),
    (128, 2, True),
)
"""Rows, consumers and whether they alternate, of tiles whose columns follow from the matrix."""
SHARES, WAVES = (1, 2, 3, 4), (1, 2, 3, 4)
PATTERN = 8
"""Columns of an instruction come in steps of these, and the pattern of a swizzle repeats after as
many rows."""
NARROWEST, WIDEST = 8, 256
"""Columns of a tile."""

Fitting = Literal["waves", "shares", "none"]
"""What columns follow from: equal shares of the matrix and the waves of blocks, the shares alone,
or neither."""
Tile = tuple[int, int, int, bool]
"""Rows, columns, consumers, and whether they alternate (ping-pong)."""


def tiles(
    m: int,
    n: int,
    batches: int,
    *,
    sms: int,
    traits: AtomTraits,
    lines: int,
    fitting: Fitting = "waves",
) -> tuple[Tile, ...]:
    """The tiles for ``batches`` matrices of m x n; ``lines``: what columns must be multiples of,
    as B is stored."""
    found = [*_fixed(m, n)]
    if fitting != "none":
        waves = WAVES if fitting == "waves" else ()
        found += _fitting(m, n, batches, waves, sms=sms, traits=traits, lines=lines)
    return tuple(dict.fromkeys(found))


def reach(size: int) -> int:
    """The most rows or columns of a tile, or of a cluster's tiles, for a matrix with ``size``."""
    return max(GROUP, 2 * size)


def _fixed(m: int, n: int) -> Iterator[Tile]:
    """Those not much larger than the matrix."""
    cooperative = ((*key, False, sides) for key, sides in COOPERATIVE.items())
    pingpong = ((rows, 2, True, sides) for rows, sides in PINGPONG.items())
    for rows, consumers, alternate, sides in (*cooperative, *pingpong):
        if rows <= reach(m):
            yield from ((rows, side, consumers, alternate) for side in sides if side <= reach(n))


def _fitting(
    m: int,
    n: int,
    batches: int,
    waves: tuple[int, ...],
    *,
    sms: int,
    traits: AtomTraits,
    lines: int,
) -> Iterator[Tile]:
    """Those whose columns follow from the matrix, and from the multiprocessors to fill."""
    for rows, consumers, alternate in FITTING:
        if rows > reach(m):
            continue
        bands = ceil(m / rows) * batches
        places = {sms * held // WHOLE for held in HELD.values()}
        counts = {wave * most // bands for wave in waves for most in places}
        for side in sorted({_columns(n, count, traits, lines) for count in {*SHARES, *counts}}):
            own = rows // (1 if alternate else consumers)
            most = min(WIDEST, _most_columns(consumers))
            if NARROWEST <= side <= most and own * side // THREADS <= ACCUMULATORS:
                yield rows, side, consumers, alternate


def _most_columns(consumers: int) -> int:
    """The most columns of one instruction whose accumulators each thread has at the launch, beside
    a producer."""
    had = registers_at_launch(THREADS * (consumers + 1), 1) - BESIDE_WGMMA
    return had * THREADS // GROUP // PATTERN * PATTERN


def _columns(n: int, count: int, traits: AtomTraits, lines: int) -> int:
    """The fewest columns of ``count`` tiles, or of one more for the instruction's and the storage's
    sake; 0 if ``count`` is."""
    if not count:
        return 0
    side = -(-ceil(n / count) // lines) * lines
    while side < WIDEST and traits.columns(side) < side:
        side += lines
    return side
