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
class Duty(Generic[S]):
    """What ``threads`` threads of a block do, from the thread ``first`` on, under a comment; they
    are whole warps.

    ``condition`` holds in these threads alone, of those that an earlier duty leaves; None: of the
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


@record
class Duties(Generic[S]):
    """``if (condition) { ... } else { ... }``: the warps of a block go different ways.

    A ``Barrier`` within one is the whole block's still: what a duty's threads meet at is a
    ``NamedBarrier``.
    """

    duties: tuple[Duty[S], ...]


@record
class ArriveBarrier:
    """One arrival at ``barrier`` of each thread that comes here: what it did before, those see that
    wait for the phase (PTX: mbarrier.arrive)."""

    SYNTAX = "{barrier}"

    barrier: Element


@record
class SetRegisters:
    """``setmaxnreg``: from here on each thread of the warpgroup has ``count`` registers; with
    ``more``, once other warpgroups have given them up."""

    SYNTAX = "{count}"

    count: int
    more: bool = False


@record
class NamedBarrier:
    """``bar.sync number, threads``: until so many of the block's threads, in whole warps, have
    come.

    There are 16 of them; ``__syncthreads`` is the one with the number 0 and all threads.
    """

    SYNTAX = "{number} of {threads}"

    number: int
    threads: Expr
