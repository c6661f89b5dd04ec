"""Blocks that share a tile: each hands its part of the sums over, and the last one adds them.

No block waits for another.  A block writes its part to the workspace and counts itself in; the one
that finds all others counted reads the parts back and goes on to the epilogue, the others leave.
Whichever comes last, it adds the parts in the order of their numbers, its own among them, so that
every run gives the same bits.
"""

from __future__ import annotations

from gemmgen.ir.expanded import CountIn, Gather, HandOver, Phase, Sync, Timed
from gemmgen.ir.nodes import Kernel


def reduction(kernel: Kernel) -> tuple[Timed, ...]:
    """From each part's sums to the tile's, in the block that comes last; nothing for one part."""
    work = kernel.work
    if work.parts == 1:
        return ()
    origins = tuple(o for o in work.origins if o.split()[0] == "split_k")
    atomic = work.reduce == "atomic"
    hand_over = "add the part's sums to the tile's" if atomic else "hand the part's sums over"
    gather = "the sums of all parts; zeros stay behind" if atomic else "add the parts in order"
    return (
        Phase(hand_over, origins, (HandOver(atomic),)),
        Phase("only the block that comes last goes on", (), (Sync(), CountIn())),
        Phase(gather, origins, (Gather(atomic),)),
    )
