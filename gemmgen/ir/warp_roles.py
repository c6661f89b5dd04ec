"""Warps of a block that run different programs (CUTLASS: warp specialization), and how they meet.

The expanded and the lowered IR have these nodes in common.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from gemmgen.base.record import record
from gemmgen.ir.buffers import Origins
from gemmgen.ir.expr import Expr

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

    A ``sync_block`` within one is the whole block's still: what a role's threads meet at is a
    named barrier (``sync_warps``).
    """

    roles: tuple[WarpRole[S], ...]
