"""How a warp's lanes share out the accesses of a fragment, as compilers for sm_80 on have it.

Fragments are loaded by ldmatrix, to which each lane names 16 bytes of a line. Of accumulators, a
lane has two neighbours in each quarter of the piece (PTX ISA, "Matrix Fragments for mma.m16n8k16").
"""

from __future__ import annotations

import numpy as np

from gemmgen.ir.atoms import WMMA
from gemmgen.ir.target import WARP
from gemmgen.ir.warp_matrices import LoadFragment, StoreFragment
from gemmgen.numerics.operators import Ints

Spans = tuple[tuple[Ints, Ints], ...]
"""Accesses: for each lane the line, and its first element in the line."""

HALF = WMMA.m // 2
MULTIPLY_ADDS = 64
"""Multiply-adds per lane of the machine's m16n8k16; a WMMA multiplication issues two of them."""

_LANE = np.arange(WARP)
_QUARTERS = tuple((row, column) for row in (0, HALF) for column in (0, HALF))
_LOADED: Spans = ((_LANE % WMMA.m, _LANE // WMMA.m * HALF),)
_PAIRS: Spans = tuple((_LANE // 4 + row, _LANE % 4 * 2 + column) for row, column in _QUARTERS)
_TRANSPOSED: Spans = tuple((within + e, line) for line, within in _PAIRS for e in (0, 1))


def spans_of(node: LoadFragment | StoreFragment) -> tuple[Spans, int]:
    """The accesses of a fragment, and the number of elements of each."""
    if isinstance(node, LoadFragment):
        return _LOADED, HALF
    return (_PAIRS, 2) if node.line == "row" else (_TRANSPOSED, 1)
