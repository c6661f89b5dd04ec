"""A step of a block: a copy, a computation, an arrival or a wait."""

from __future__ import annotations

from typing import Literal

from gemmgen.base.record import record

What = Literal[
    "load",
    "store",
    "copy",
    "commit",
    "wait",
    "barrier",
    "read",
    "multiply",
    "reduce",
    "write",
    "expect",
    "await",
    "release",
]
"""``load``: global memory to registers; ``store``: registers to a stage in shared memory; ``copy``:
an asynchronous copy between the two; ``read``: shared memory to registers; ``reduce``: accumulators
of other lanes or blocks are added; ``write``: C. Of a barrier in shared memory, ``expect``: copies
are announced to it; ``await``: a phase of it has ended; ``release``: its stage is read no more."""


@record
class BlockStep:
    """``operand`` is a tensor's name.  ``tile`` counts steps along k, ``k`` is the element along k
    within the tile, None for a whole tile; ``stage`` is that of the shared tile or the slot of the
    fragments.  At most ``pending`` groups are left in flight by a ``wait``.  ``empty``: the tile
    lies after the last one, so nothing is moved.

    ``role`` names the warps that take it, if they have their own program.  ``barrier`` is the
    array in shared memory with a barrier for each stage, ``phase`` the one that is announced, or
    counts the copy, or has been waited for (-1: the one before the first, ended from the start), or
    is arrived at.
    """

    what: What
    operand: str = ""
    tile: int = 0
    k: int | None = None
    stage: int | None = None
    pending: int = 0
    empty: bool = False
    role: str = ""
    barrier: str = ""
    phase: int = 0


PINGPONG = ("consumer 1", "consumer 2")
"""The roles of ping-pong consumers."""
OTHERS = BlockStep("barrier", "others")
"""Not a step: control passes to the other roles of the block."""
