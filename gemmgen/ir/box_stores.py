"""Stores of boxes by the copy engine (TMA), from shared memory to a tensor, in groups of the thread
that asks for them.  The expanded and the lowered IR have these nodes in common.
"""

from __future__ import annotations

from gemmgen.base.record import record
from gemmgen.ir.expr import Expr


@record
class FenceAsync:
    """What the thread has written to shared memory, the copy engine sees, if it is asked by a
    thread that knows of the fence: by one that meets this one at a barrier behind it."""


@record
class CommitBoxes:
    """Ends a group of stores of boxes: the thread's stores since the last one."""


@record
class AwaitBoxes:
    """Until at most ``pending`` of the thread's groups have shared memory to read yet.  Others
    know of that behind a barrier alone."""

    SYNTAX = "{pending}"

    pending: Expr
