"""What an instruction of a contraction multiplies, and what holds its operands: atoms, as data."""

from __future__ import annotations

from typing import Literal

from gemmgen.base.record import record
from gemmgen.ir.dtypes import DType

Atom = Literal["fma", "wmma"]
"""``fma``: one product of one thread; ``wmma``: a warp's matrices of 16 x 16, on tensor cores."""

Holding = Literal["thread", "lanes", "opaque"]
"""What holds the operands and sums of a contraction, which chooses how it is lowered.

``thread``: each thread the elements that it owns.  ``lanes``: the lanes of a warp have partial sums
of the same elements, each over its own k.  ``opaque``: the lanes of a warp hold a piece together,
and which lane has which element is unspecified.
"""


@record
class AtomTraits:
    """One atom (CuTe: ``MMA_Traits``): ``m`` x ``n`` sums of ``k`` products each, by ``lanes``
    threads together.

    Both operands are of one of ``types`` (none: of any type, converted to that of the sums), the
    sums f32.  ``line``: bytes of which the distance of an operand's lines in shared memory is a
    multiple; ``aligned``: bytes to which what it loads and stores in shared memory begins.
    """

    m: int
    n: int
    k: int
    lanes: int
    holding: Holding
    types: tuple[DType, ...] = ()
    line: int = 1
    aligned: int = 16

    @property
    def registers(self) -> int:
        """A lane's share of one piece of the sums."""
        return self.m * self.n // self.lanes


FMA = AtomTraits(1, 1, 1, 1, "thread")

# The CUDA C++ Programming Guide, "Warp Matrix Functions": shapes, types, that a leading dimension
# is a multiple of 16 bytes, and that pointers are aligned to 256 bits.  The PTX manual asks f16's
# lines for 32 bytes; ldmatrix, which compilers make of it, needs 16.  Every architecture here
# multiplies the types that it has at all.
WMMA = AtomTraits(16, 16, 16, 32, "opaque", ("f16", "bf16"), line=16, aligned=32)

ATOMS: dict[Atom, AtomTraits] = {"fma": FMA, "wmma": WMMA}
