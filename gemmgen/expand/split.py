"""Split-K: each block writes its partial sums, and the last block to arrive adds them.

No block waits for another.  A block writes its part to the workspace and increments a counter; the
last one reads the parts and computes the epilogue, the others return.  It adds the parts in the
order of their numbers, its own among them, so that every run gives the same bits.  With groups this
happens twice: for the parts of each group, then for the groups.
"""

from __future__ import annotations

from gemmgen.ir.buffers import Origins
from gemmgen.ir.control import Block
from gemmgen.ir.expanded import Timed
from gemmgen.ir.instruction import instruction
from gemmgen.ir.nodes import Kernel
from gemmgen.ir.partial_sums import Arrive, ReducePartials, ReduceScope, StorePartial

LEAVE = "the last block to arrive reduces"


def reduction(kernel: Kernel) -> tuple[Timed, ...]:
    """The reduction of the parts, in the last block to arrive; empty for one part."""
    work = kernel.work
    if work.parts == 1:
        return ()
    origins = tuple(o for o in work.origins if o.split()[0] == "split_k")
    if work.reduce == "atomic":
        return (
            Block(
                "add this split's partial sums to the workspace",
                origins,
                (StorePartial("parts", atomic=True),),
            ),
            Block(LEAVE, (), (instruction("sync_block"), Arrive("parts"))),
            Block(
                "read the sums of all splits from the workspace, and zero them",
                origins,
                (ReducePartials("parts", atomic=True),),
            ),
        )
    if work.groups == 1:
        note = (
            "add the other split's partial sums"
            if work.parts == 2
            else "add the partial sums in order"
        )
        return _reduction("parts", "split", note, origins)
    return (
        *_reduction("group", "split", "add the group's partial sums in order", origins),
        *_reduction("groups", "group", "add the groups in order", origins),
    )


def _reduction(scope: ReduceScope, one: str, note: str, origins: Origins) -> tuple[Timed, ...]:
    return (
        Block(f"write this {one}'s partial sums to the workspace", origins, (StorePartial(scope),)),
        Block(LEAVE, (), (instruction("sync_block"), Arrive(scope))),
        Block(note, origins, (ReducePartials(scope),)),
    )
