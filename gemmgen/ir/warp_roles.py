"""Warps of a block that run different programs (CUTLASS: warp specialization), and how they meet.

The expanded and the lowered IR have these nodes in common.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from gemmgen.base.record import record
from gemmgen.ir.buffers import Origins
from gemmgen.ir.expr import Element, Expr

S = TypeVar("S", covariant=True)


@record
class WarpRole(Generic[S]):
    """What ``threads`` threads of a block do, from the thread ``first`` on, under a comment; they
    are whole warps.  Of ``groups`` of this many threads, one after the other, each goes its own
    way in time.

    ``condition`` holds in these threads alone, of those that an earlier role leaves; None: of the
    last one.
    """

    SYNTAX = "{name}"

    name: str
    first: int
    threads: int
    note: str
    origins: Origins
    body: tuple[S, ...]
    condition: Expr | None = None
    groups: int = 1

    @property
    def parts(self) -> tuple[tuple[int, int], ...]:
        """The first thread and the number of each group."""
        firsts = (self.first + group * self.threads for group in range(self.groups))
        return tuple((first, self.threads) for first in firsts)


@record
class WarpRoles(Generic[S]):
    """``if (condition) { ... } else { ... }``: the warps of a block go different ways.

    A ``Barrier`` within one is the whole block's still: what a role's threads meet at is a
    ``NamedBarrier``.
    """

    roles: tuple[WarpRole[S], ...]


@record
class ArriveBarrier:
    """One arrival at ``barrier`` of each thread that comes here: what it did before, those see that
    wait for the phase (PTX: mbarrier.arrive).  With ``block``, a rank, it is the barrier at that
    place in the shared memory of that block of the cluster."""

    SYNTAX = "{barrier}"

    barrier: Element
    block: Expr | None = None


@record
class SetRegisters:
    """``setmaxnreg``: from here on each thread of the warpgroup has ``count`` registers; with
    ``more``, once other warpgroups have given them up."""

    SYNTAX = "{count}"

    count: int
    more: bool = False


@record
class NamedBarrier:
    """``bar.sync number, threads``: until this many of the block's threads, in whole warps, have
    come.

    There are 16 of them; ``__syncthreads`` is the one with the number 0 and all threads.
    """

    SYNTAX = "{number} of {threads}"

    number: Expr
    threads: Expr
