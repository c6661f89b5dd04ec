"""Blocks of a cluster: their barrier, and arrivals at the mbarriers of another block.

They are walked as one block with the threads of all of them.  Each has its own shared memory and
its own mbarriers.  What a producer knows passes to the mbarriers of the blocks that it copies to:
their phases do not end before it has issued the copy.  Such knowledge is about time alone
(``Clocks.timed``): it shows which waits and which phases are over, but orders no accesses.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from gemmgen.ir.instruction import Instruction
from gemmgen.ir.target import WARP
from gemmgen.numerics.operators import Bools, Ints
from gemmgen.prove import barrier_phases, condition_queries, symbolic_values, warp_clocks
from gemmgen.prove.data import numbers
from gemmgen.prove.integers import Unsupported
from gemmgen.prove.state import WalkScope, WalkState
from gemmgen.prove.walk_context import WalkContext

NOT_ALL = "some threads of the cluster do not come to its barrier"


def sync(context: WalkContext, state: WalkState, scope: WalkScope) -> None:
    """All threads of the cluster wait for each other; those of a role for the other roles."""
    if context.partials is not None and context.partials.counts:
        raise Unsupported("a cluster's barrier in blocks that are the last of their tiles")
    if scope.role:
        here = np.zeros(context.threads, np.bool_)
        here[context.active(state)] = True
        if not all(map(condition_queries.is_uniform, state.path)):
            raise Unsupported("a barrier under a condition of each thread")
        came = here if state.waiting is None else here | state.waiting
        state.waiting = None if came.all() else came
        if state.waiting is not None:
            return
    meet(state)


def check_waiting(context: WalkContext, state: WalkState) -> None:
    """That no thread goes on that waits for the rest of its cluster."""
    if state.waiting is not None and state.waiting[context.active(state)].any():
        raise Unsupported("what a role does after a cluster's barrier that others have not reached")


def meet(state: WalkState) -> None:
    """All threads of the cluster wait for each other."""
    clocks, barriers = barrier_phases.parts(state)
    if state.pending is not None:
        raise Unsupported("a barrier under a condition of each thread")
    warp_clocks.meet(clocks, state.traces, np.arange(clocks.warps))
    if barriers.numbers:
        barriers.remote.fill(0)


def check_whole(context: WalkContext, state: WalkState) -> None:
    """That a block's barrier is not that of some blocks of a cluster, which is not modeled."""
    if context.ranks == 1:
        return
    apart = [one for one in state.path if not condition_queries.is_uniform(one)]
    by_rank = all(condition_queries.is_uniform(one, context.block_threads) for one in apart)
    rows = None if state.mask is None else state.mask.reshape(context.ranks, -1)
    whole = rows is not None and bool((rows.any(axis=1) == rows.all(axis=1)).all())
    if whole or (apart and by_rank):
        raise Unsupported("a barrier of some blocks of a cluster")


def arrive_at(context: WalkContext, node: Instruction, state: WalkState, scope: WalkScope) -> None:
    """An arrival of each thread at the mbarrier of a block of its cluster."""
    barrier, rank = node.operands
    if context.partials is not None and context.partials.counts:
        raise Unsupported("an arrival at another block that may have ended")
    own = barrier_phases.number_of(context, state, scope, barrier)
    form = symbolic_values.form(context, state, scope, rank)
    if not form.concrete:
        raise Unsupported("an arrival at a block that depends on sizes")
    if own is None or context.ranks == 1:
        raise Unsupported("an arrival outside a cluster")
    ranks = numbers(form.constant, context.threads)
    about = f"an arrival at no block of a cluster of {context.ranks}"
    wrong = (ranks < 0) | (ranks >= context.ranks)
    if not context.check(state, "barriers", wrong, about):
        return
    clocks, _ = barrier_phases.parts(state)
    threads = context.active(state)
    agents = clocks.numbers_of(np.unique(threads // WARP))
    epochs = clocks.now[agents]
    for target in np.unique(ranks[threads]):
        here = context.masked(state, cast(Bools, ranks == target))
        clocks.now[agents] = epochs  # a warp's lanes arrive in one epoch
        _arrive(context, here, barrier_phases.of_rank(context, state, own, int(target)), target)
    clocks.now[agents] = epochs + 1


def _arrive(context: WalkContext, state: WalkState, number: int, target: int) -> None:
    _, barriers = barrier_phases.parts(state)
    barrier_phases.check_begun(context, state, number)
    early = barrier_phases.early_warps(context, state, number)
    loosely = early.size > 0 and _knows_arrivals(state, number, early)
    if loosely:
        barriers.loose[number] = 1
    threads = context.active(state)
    barrier_phases.arrive(context, state, number, 0, loosely)
    if (context.rank[threads] != target).any():
        barriers.remote[number] = 1


def _knows_arrivals(state: WalkState, number: int, warps: Ints) -> bool:
    """Whether some warps that arrive know all that the arrivals of the phases before pass on.

    Then it does no harm if one of those is late and this one counts in its place: who waits for
    that phase learns from this arrival what the other one would have passed on, and the late one
    counts for this phase.  That is so where arrivals alone end a phase, and each expects no bytes.
    """
    clocks, barriers = barrier_phases.parts(state)
    if barriers.counts[number]:
        return False
    own = clocks.numbers_of(np.array([barriers.warps + number]))
    others = np.delete(np.arange(clocks.now.size), own)
    passed = barriers.passed[number, others]
    return bool((clocks.known[np.ix_(warps, others)] >= passed).all())
