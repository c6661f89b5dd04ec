"""Barriers in shared memory (PTX: mbarrier), by which threads learn that copies have landed.

A barrier goes through phases.  A phase ends once all its arrivals have come and all bytes that it
expects have been written; then the next one begins, with the same number of arrivals.  Phases are
distinguished by their parity: the first one's is 0. The expanded and the lowered IR have these
nodes in common.
"""

from __future__ import annotations

from gemmgen.base.record import record
from gemmgen.ir.expr import Element, Expr, Var

BARRIER = 8
"""Bytes of a barrier, and what its address is a multiple of."""


@record
class BarrierArray:
    """This many barriers in shared memory as ``size`` says; ``count`` is the same as an
    expression."""

    SYNTAX = "{name} {count}"

    name: str
    count: Expr
    size: int

    @property
    def bytes(self) -> int:
        return BARRIER * self.size


@record
class InitBarrier:
    """The first phase of ``barrier`` begins; each needs ``arrivals``."""

    SYNTAX = "{barrier} for {arrivals}"

    barrier: Element
    arrivals: Expr


@record
class FenceBarriers:
    """The barriers that the thread has initialized are visible to TMA; threads need a
    ``Barrier`` after it."""


@record
class ExpectBytes:
    """One arrival at ``barrier``, whose phase expects this many more bytes."""

    SYNTAX = "{barrier} of {bytes}"

    barrier: Element
    bytes: Expr


@record
class WaitBarrier:
    """Until the phase of ``barrier`` with this ``parity`` (0 or 1) has ended.

    What was written by copies that it counts is then visible to the thread.  There is nothing
    to wait for if the ``TestBarrier`` named ``unless`` found that phase complete.
    """

    SYNTAX = "{barrier} parity {parity}"

    barrier: Element
    parity: Expr
    unless: Var | None = None


@record
class TestBarrier:
    """``name``: whether ``condition`` holds, and the phase of ``barrier`` with this ``parity`` has
    ended by now (PTX: mbarrier.test_wait).  If so, what was written by copies that it counts is
    visible to the thread; no thread waits."""

    SYNTAX = "{name} of {barrier} parity {parity} if {condition}"

    name: str
    barrier: Element
    parity: Expr
    condition: Expr
