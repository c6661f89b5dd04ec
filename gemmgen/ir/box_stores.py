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


@record
class FenceAsync:
    """What the thread has written to shared memory, TMA sees, and what the thread has
    read there, it may overwrite, if it is asked by a thread that knows of the fence: by one that
    waits with this one at a barrier after it."""


@record
class CommitBoxes:
    """Ends a group of stores of boxes: the thread's stores since the last one."""


@record
class AwaitBoxes:
    """Until at most ``pending`` of the thread's groups have shared memory to read yet.  Others
    know of that after a barrier alone."""

    SYNTAX = "{pending}"

    pending: Expr
