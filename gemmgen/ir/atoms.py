"""What an instruction of a contraction multiplies: the atoms, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gemmgen.ir.dtypes import DType

Atom = Literal["fma", "wmma"]
"""``fma``: one product of one thread; ``wmma``: a warp's matrices of 16 x 16, on tensor cores."""


@dataclass(frozen=True)
class TensorAtom:
    """An instruction for all lanes of a warp: ``m`` x ``n`` sums of ``k`` products each.

    ``since`` gives for each type of its operands the first architecture that has it (80: sm_80);
    its sums are f32.  ``line`` is what the lines of an operand in shared memory must be a multiple
    of, in bytes.
    """

    m: int
    n: int
    k: int
    since: tuple[tuple[DType, int], ...]
    line: int


# The CUDA C++ Programming Guide, "Warp Matrix Functions": shapes, types, and that a leading
# dimension is a multiple of 16 bytes.
WMMA = TensorAtom(16, 16, 16, (("f16", 70), ("bf16", 80)), 16)

TENSOR_ATOMS: dict[Atom, TensorAtom] = {"wmma": WMMA}
