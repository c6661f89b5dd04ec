"""Copies to shared memory that threads ask for, and that land some time later."""

from __future__ import annotations

from gemmgen.base.record import record
from gemmgen.ir.dtypes import DType
from gemmgen.ir.expr import Element, Expr
from gemmgen.ir.nodes import Eviction


@record
class CopyAsync:
    """``width`` elements from global to shared memory, some time before the ``Wait`` for their
    group.

    ``valid`` (an expression in elements, 0 to ``width``) are copied, the rest is filled with zeros.
    Source and target have ``dtype``.  ``evict`` is a hint for the L2 cache.
    """

    SYNTAX = "{target} = {source}"

    target: Element
    source: Element
    width: int
    valid: Expr
    dtype: DType = "f32"
    evict: Eviction = "normal"


@record
class LoadBox:
    """A box of ``tensor``, by its map, to shared memory from ``target`` on, some time before the
    phase of ``barrier`` ends that counts its bytes.

    ``at`` is the box's first element, innermost index first; elements outside the tensor are zeros.
    The box lands row by row with no gaps, and ``target`` is at a multiple of 128 bytes.  ``evict``
    is a hint for the L2 cache.  With ``blocks``, bits of the ranks of the cluster's blocks, it
    lands at that place in the memory of each of these, and is counted by the barrier there.
    """

    SYNTAX = "{target} = {tensor}{at} to {barrier}"

    target: Element
    tensor: str
    barrier: Element
    at: tuple[Expr, ...]
    dtype: DType = "f32"
    evict: Eviction = "normal"
    blocks: Expr | None = None
