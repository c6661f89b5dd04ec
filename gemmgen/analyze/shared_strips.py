"""The strips of A and B that concurrent blocks read, which the order of the tiles determines.

A tile of C takes a strip of A, which all tiles of its row share, and a strip of B, which all of its
column share.  Blocks of a wave, which have consecutive numbers, read each of their strips from
device memory at most once if the L2 cache holds a step along k of all of them.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gemmgen.analyze.tile_origins import origins_at
from gemmgen.base.record import record
from gemmgen.ir.lowered import LoweredKernel
from gemmgen.numerics.operators import Ints

MOST_BLOCKS = 1 << 17
"""Blocks whose tiles are looked at."""


@record
class SharedStrips:
    """Averages over the waves: strips of A, of B, and of both ``row_by_row``, if the same tiles
    came in rows."""

    a: float
    b: float
    row_by_row: float


def shared_strips(
    kernel: LoweredKernel, values: Mapping[str, int | float], at_once: int
) -> SharedStrips:
    """Of waves of ``at_once`` blocks, the last one perhaps of fewer; the grid is not empty.

    Of a launch with more than ``MOST_BLOCKS`` some waves are taken, evenly spaced.
    """
    interface = kernel.interface
    tiles = interface.tile_count({name: int(values[name]) for name in interface.shaping()})
    (rows, tall), (columns, wide) = interface.tiles
    across = -(-int(values[columns]) // wide)
    of_each = -(-int(values[rows]) // tall) * across
    wave, block = _some_waves(tiles * interface.parts, at_once)
    _, (row, column), _, _ = origins_at(kernel, values, block)
    row, column = row // tall, column // wide
    matrix, number = block % tiles // of_each, block % of_each

    def mean(strip: Ints) -> float:
        """Different strips of a wave; those of another matrix are others."""
        own = np.unique(matrix, return_inverse=True)[1]
        each = (wave * (int(own.max()) + 1) + own) * of_each + strip
        return np.unique(each).size / (int(wave.max()) + 1)

    plain = mean(number // across) + mean(number % across)
    return SharedStrips(mean(row), mean(column), plain)


def _some_waves(grid: int, at_once: int) -> tuple[Ints, Ints]:
    """Blocks of a ``grid``, and the number of the wave of each, counted from 0."""
    waves, taken = -(-grid // at_once), max(2, MOST_BLOCKS // at_once)
    first = np.arange(waves) if waves <= taken else np.arange(taken) * (waves - 1) // (taken - 1)
    block = (first[:, None] * at_once + np.arange(at_once)).ravel()
    wave = np.repeat(np.arange(first.size), at_once)
    return wave[block < grid], block[block < grid]
