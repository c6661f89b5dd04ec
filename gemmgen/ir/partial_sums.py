"""Nodes of the expanded IR for partial sums of blocks; the last block to arrive adds them up."""

from __future__ import annotations

from typing import Literal

from gemmgen.base.record import record
from gemmgen.ir.expr import Expr

ReduceScope = Literal["parts", "group", "groups"]
"""Whose accumulators are added: those of all parts of a tile, of the parts of one group, or of the
groups of a tile."""


@record
class StorePartial:
    """Write the block's partial sums to the workspace; ``atomic``: add them to the tile's."""

    scope: ReduceScope
    atomic: bool = False


@record
class Arrive:
    """Count the block among those of its ``scope``; all but the last to arrive leave the kernel.
    With ``threads`` these, at the named barrier ``number``, share the tile, not all of the block.

    The partial sums that the block wrote before are published, and those of the blocks that arrived
    before it become visible.
    """

    scope: ReduceScope
    number: Expr | None = None
    threads: Expr | None = None


@record
class ReducePartials:
    """Add the partial sums of the ``scope`` in their order; ``atomic``: they are added already, and
    the workspace is left zero."""

    scope: ReduceScope
    atomic: bool = False
