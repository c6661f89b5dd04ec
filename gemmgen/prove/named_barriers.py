"""Named barriers: whole warps of one role wait for each other (``bar.sync``)."""

from __future__ import annotations

import numpy as np

from gemmgen.ir.instruction import Instruction
from gemmgen.ir.target import WARP
from gemmgen.prove import condition_queries, conditions, symbolic_values, warp_clocks
from gemmgen.prove.barrier_phases import parts
from gemmgen.prove.conditions import Truth
from gemmgen.prove.integers import Unsupported
from gemmgen.prove.state import VariableSlot, WalkScope, WalkState
from gemmgen.prove.walk_context import WalkContext

MOST = 16
"""Barriers of a block; number 0 is that of ``__syncthreads``."""


def sync_warps(context: WalkContext, node: Instruction, state: WalkState, scope: WalkScope) -> None:
    """All threads of a block that are here wait for each other.  The same ones use a barrier
    everywhere, so that none of another group counts in their place."""
    number, count = (
        symbolic_values.form(context, state, scope, each).number() for each in node.operands[:2]
    )
    if number is None or count is None:
        raise Unsupported("a named barrier whose number or threads are not known")
    if state.pending is not None or not all(map(condition_queries.is_uniform, state.path)):
        raise Unsupported("a named barrier under a condition of each thread")
    for rank, own in context.by_rank(state):
        _meet(context, own, number, count, rank)
    if node.name == "sync_warps_or":
        _publish(context, node, state, scope)


def _publish(context: WalkContext, node: Instruction, state: WalkState, scope: WalkScope) -> None:
    """Whether a thread has true: the result for all threads of its block that are here."""
    own = symbolic_values.truth(context, state, scope, node.operands[2])
    if not isinstance(own, Truth):
        raise Unsupported("a barrier that publishes what depends on sizes")
    true = np.zeros(context.threads, np.bool_)
    true[context.active(state)] = True
    true &= own.value
    found = np.zeros(context.threads, np.bool_)
    for rank in np.unique(context.rank[true]):
        found |= context.rank == rank
    key = scope.key(node.result)
    state.slots[key] = conditions.YES if found.all() else Truth(found)
    scope.names[node.result] = VariableSlot(key)


def _meet(context: WalkContext, state: WalkState, number: int, count: int, rank: int) -> None:
    clocks, _ = parts(state)
    threads = context.active(state)
    about = f"barrier {number} is none of the {MOST - 1} named ones"
    context.check(state, "barriers", not 0 < number < MOST, about)
    about = f"{threads.size} threads come to a barrier of {count}"
    context.check(state, "barriers", threads.size != count, about)
    own = context.named.setdefault((rank, number), threads.tobytes())
    about = f"other threads come to barrier {number} elsewhere"
    context.check(state, "barriers", own != threads.tobytes(), about)
    warps = np.unique(threads // WARP)
    whole = threads.size == warps.size * WARP
    if context.check(state, "barriers", not whole, "some lanes of a warp come to a barrier"):
        warp_clocks.meet(clocks, state.traces, warps)
    if context.partials is not None:
        context.partials.meet(threads)
