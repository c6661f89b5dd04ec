"""How many strips of A and B the blocks that run at once read: what the order of the tiles is for.

A tile of C takes a strip of A, which all tiles of its row share, and a strip of B, which all of its
column share.  Blocks of a wave, which have consecutive numbers, read each of their strips from
device memory at most once if the L2 cache holds a step along k of all of them.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gemmgen.analyze.tile_origins import origins_of
from gemmgen.base.record import record
from gemmgen.ir.lowered import LoweredKernel
from gemmgen.numerics.operators import Ints


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
    """Of waves of ``at_once`` blocks, the last one perhaps of fewer; the grid is not empty."""
    interface = kernel.interface
    tiles = interface.tile_count({name: int(values[name]) for name in interface.shaping()})
    (rows, tall), (columns, wide) = interface.tiles
    across = -(-int(values[columns]) // wide)
    of_each = -(-int(values[rows]) // tall) * across
    numbers: list[Ints] = []
    found: list[tuple[Ints, Ints]] = []
    for blocks, (row, column), _, _ in origins_of(kernel, values):
        numbers.append(blocks)
        found.append((row // tall, column // wide))
    block = np.concatenate(numbers)
    matrix, wave = block % tiles // of_each, block // at_once
    row, column = (np.concatenate(part) for part in zip(*found, strict=True))
    number = block % of_each

    def mean(strip: Ints) -> float:
        """Different strips of a wave; those of another matrix are others."""
        each = (wave * (int(matrix.max()) + 1) + matrix) * of_each + strip
        return np.unique(each).size / (int(wave.max()) + 1)

    plain = mean(number // across) + mean(number % across)
    return SharedStrips(mean(row), mean(column), plain)
