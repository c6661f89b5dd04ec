"""What an instruction of a contraction multiplies: the atoms, as data."""

from __future__ import annotations

from typing import Literal

from gemmgen.base.record import record
from gemmgen.ir.dtypes import DType

Atom = Literal["fma", "wmma"]
"""``fma``: one product of one thread; ``wmma``: a warp's matrices of 16 x 16, on tensor cores."""


@record
class TensorAtom:
    """An instruction for all lanes of a warp: ``m`` x ``n`` sums of ``k`` products each.

    Both operands are of one of ``types``, the sums f32.  ``line``: bytes of which the distance of
    an operand's lines in shared memory is a multiple.
    """

    m: int
    n: int
    k: int
    types: tuple[DType, ...]
    line: int


# The CUDA C++ Programming Guide, "Warp Matrix Functions": shapes, types, and that a leading
# dimension is a multiple of 16 bytes.  The PTX manual asks f16 for 32; ldmatrix, which compilers
# make of it, needs 16.  Every architecture here multiplies the types that it has at all.
WMMA = TensorAtom(16, 16, 16, ("f16", "bf16"), 16)

TENSOR_ATOMS: dict[Atom, TensorAtom] = {"wmma": WMMA}
