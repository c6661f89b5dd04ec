"""Stores of boxes by TMA, from shared memory to a tensor, in groups of the thread
that asks for them.  The expanded and the lowered IR have all but ``StoreBox`` in common.
"""

from __future__ import annotations

from gemmgen.base.record import record
from gemmgen.ir.dtypes import DType
from gemmgen.ir.expr import Element, Expr


@record
class StoreBox:
    """A box of shared memory from ``source`` on, at a multiple of 128 bytes, to ``tensor``, by its
    map, some time before the thread's wait for its group.

    ``at`` is the box's first element, innermost index first; elements outside the tensor are left
    out.
    """

    SYNTAX = "{tensor}{at} = {source}"

    source: Element
    tensor: str
    map: str
    at: tuple[Expr, ...]
    dtype: DType = "f32"
