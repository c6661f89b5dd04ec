"""Where the elements of a wgmma operand lie in its tile in shared memory."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from gemmgen.interpreter.boxes import permuted
from gemmgen.ir.warpgroup_matrices import ROWS
from gemmgen.numerics.operators import Ints


@lru_cache(maxsize=256)
def operand_places(
    begin: int,
    further: int,
    size: int,
    aligned: int,
    where: tuple[int, int, int, int, bool],
    extents: tuple[int, int],
) -> tuple[Ints, int]:
    """Where the elements of an operand lie in its tile, rows by k; and the end of the last one.

    The tile begins with element ``begin``, and the operand ``further`` bytes on; an element has
    ``size`` bytes.  ``where`` is what its descriptor says: the bytes of a row, of the leading
    dimension and of the stride, the swizzle, and whether the operand is MN-major.
    """
    line, leading, stride, swizzle, mn_major = where
    rows, depth = extents
    row, k = np.arange(rows)[:, None], np.arange(depth)
    if mn_major:
        width = line // size
        column = row // width * leading + row % width * size
        at = column + k // ROWS * stride + k % ROWS * line
    else:
        at = row // ROWS * stride + row % ROWS * line + k * size
    found = permuted(begin + (at + further) // size, size, aligned, swizzle)
    found.flags.writeable = False
    # Negative numbers are large ones when read as unsigned.
    return found, int(found.view(np.uint64).max()) + 1
