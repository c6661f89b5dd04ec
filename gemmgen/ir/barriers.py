"""Barriers in shared memory (PTX: mbarrier), by which threads learn that copies have landed.

A barrier goes through phases.  A phase ends once all its arrivals have come and all bytes that it
expects have been written; then the next one begins, with the same number of arrivals.  Phases are
distinguished by their parity: the first one's is 0. The expanded and the lowered IR have these
nodes in common.
"""

from __future__ import annotations

from gemmgen.base.record import record
from gemmgen.ir.expr import Expr

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
