"""Nodes of lowered code for tensor cores whose lanes hold known elements
(``ir/fragment_layout.py``): what a warp loads and multiplies together."""

from __future__ import annotations

from gemmgen.base.record import record
from gemmgen.ir.dtypes import BYTES, DType
from gemmgen.ir.expr import Element, Expr, Int
from gemmgen.ir.fragment_layout import FragmentLayout

REGISTER = 4
"""Bytes of a register of a fragment."""
ROWS, ROW_BYTES = 8, 16
"""Rows of a matrix that ``ldmatrix`` loads, and the bytes of each."""
MATRIX = FragmentLayout(((4, "column", 2), (8, "row", 1)), ((2, "column", 1),))
"""The PTX ISA, "stmatrix": what each lane holds of a matrix of 8 x 8 elements of 16 bits."""


def packed(dtype: DType) -> int:
    """Elements in a register of a fragment; one of 8 bytes has two registers."""
    return max(1, REGISTER // BYTES[dtype])


def row_of(dtype: DType) -> int:
    """Elements in a row of a matrix that ``ldmatrix`` loads."""
    return ROW_BYTES // BYTES[dtype]


@record
class OperandArray:
    """A lane's registers of an operand's fragments, ``packed`` elements of ``dtype`` in each."""

    SYNTAX = "{name}{shape} {dtype}"

    name: str
    dtype: DType
    shape: tuple[Expr, ...]
    sizes: tuple[int, ...]
    zero: bool = False
    wide: bool = False


@record
class SplitMatrices:
    """Split the f32 registers that ``ldmatrix`` loaded, from ``source`` on, into ``parts`` terms of
    type ``dtype``, two to a register: ``count`` registers of each term, from ``target`` on, which
    is a register of the first term; its last index but one is the term's."""

    SYNTAX = "{target} = {source}"

    target: Element
    source: Element
    count: int
    parts: int
    dtype: DType

    def part(self, number: int) -> Element:
        """The first register of a part."""
        *outer, _, register = self.target.indices
        return Element(self.target.buffer, (*outer, Int(number), register))
