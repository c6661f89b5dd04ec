"""The types of A, B and the accumulators as modifiers of an instruction that multiplies."""

from __future__ import annotations

from typing import cast

from gemmgen.ir.atoms import Product
from gemmgen.ir.instruction import Instruction

_SIDES = ("a", "b", "acc")


def types_of(node: Instruction) -> Product:
    return cast("Product", tuple(node.get(side) for side in _SIDES))
