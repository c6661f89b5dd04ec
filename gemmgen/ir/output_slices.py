"""C stored through shared memory, in slices: a row of each micro-tile at a time, or pieces of
neighbouring rows (``ir.buffers.slice_height``).

``stage`` says which of several slices in shared memory it passes through; None if there is one.
"""

from __future__ import annotations

from gemmgen.base.record import record
from gemmgen.ir.expr import Expr
from gemmgen.ir.nodes import Copy, Map


@record
class StageSlice:
    """``map`` of each thread's micro-tile from the row ``row`` on, into the slice in shared
    memory."""

    SYNTAX = "{map} row {row}"

    map: Map
    row: Expr
    stage: Expr | None = None


@record
class StoreSlice:
    """``copy`` takes the slice to global memory, where it is the row ``row`` of each thread's
    micro-tile."""

    SYNTAX = "{copy} row {row}"

    copy: Copy
    row: Expr
    stage: Expr | None = None


@record
class StoreBoxes:
    """``copy`` takes the slice to global memory by TMA, which leaves out elements
    outside the matrix.  A thread issues it for the whole block."""

    SYNTAX = "{copy} row {row}"

    copy: Copy
    row: Expr
    stage: Expr | None = None
