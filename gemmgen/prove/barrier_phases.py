"""Instructions of mbarriers: arrivals, bytes and waits."""

from __future__ import annotations

import numpy as np

from gemmgen.ir.expr import Element, Expr, Unary, Var
from gemmgen.ir.instruction import Instruction
from gemmgen.ir.target import WARP
from gemmgen.numerics.operators import Ints
from gemmgen.prove import condition_queries, conditions, symbolic_values, warp_clocks
from gemmgen.prove.conditions import YES, Truth
from gemmgen.prove.data import Data, Pick
from gemmgen.prove.integers import Unsupported
from gemmgen.prove.mbarriers import ALWAYS, NEVER, BarrierStates
from gemmgen.prove.state import VariableSlot, WalkScope, WalkState, under
from gemmgen.prove.walk_context import WalkContext
from gemmgen.prove.warp_clocks import Clocks

MOST_BYTES = 2**20 - 1
"""Bytes that a phase may expect at once (PTX ISA, tx-count of an mbarrier)."""


def parts(state: WalkState) -> tuple[Clocks, BarrierStates]:
    if state.clocks is None or state.barriers is None:
        raise Unsupported("an mbarrier that is not declared")
    return state.clocks, state.barriers


def number_of(
    context: WalkContext, state: WalkState, scope: WalkScope, barrier: Expr
) -> int | None:
    """The number of an mbarrier in its block; None if it is outside its array."""
    _, barriers = parts(state)
    assert isinstance(barrier, Element)
    (index,) = barrier.indices
    own = symbolic_values.form(context, state, scope, index).number()
    if own is None or barrier.buffer not in barriers.first:
        raise Unsupported(f"an mbarrier of {barrier.buffer} whose number is not known")
    first, size = barriers.first[barrier.buffer]
    about = f"{barrier.buffer}[{own}], of {size}"
    return first + own if context.check(state, "barriers", not 0 <= own < size, about) else None


def of_rank(context: WalkContext, state: WalkState, number: int, rank: int) -> int:
    """The number of a block's mbarrier among those of all blocks of a cluster."""
    _, barriers = parts(state)
    return number + rank * (barriers.capacity // context.ranks)


def execute(context: WalkContext, node: Instruction, state: WalkState, scope: WalkScope) -> None:
    if node.name == "fence_barrier_init":
        _, barriers = parts(state)
        barriers.fenced[np.isin(barriers.starter, context.active(state) // WARP)] = 1
        return
    if node.name == "test_wait" and node.predicate is not None:
        tested = symbolic_values.truth(context, state, scope, node.predicate)
        state = under(state, tested)
        if isinstance(tested, Truth) and tested.value is False:
            raise Unsupported("a test that no thread makes")
    own = number_of(context, state, scope, node.operands[0])
    if own is None:
        return
    for rank, here in context.by_rank(state):
        _execute(context, node, here, scope, of_rank(context, state, own, rank))


def _execute(
    context: WalkContext, node: Instruction, state: WalkState, scope: WalkScope, number: int
) -> None:
    """An instruction on one mbarrier."""
    if node.name == "init_barrier":
        count = symbolic_values.form(context, state, scope, node.operands[1]).number()
        _init(context, state, number, count)
        return
    check_begun(context, state, number, use=node.name)
    match node.name:
        case "arrive":
            arrive(context, state, number, 0)
        case "expect_bytes":
            count = symbolic_values.form(context, state, scope, node.operands[1]).number()
            if count is None:
                raise Unsupported("expected bytes that are not known")
            arrive(context, state, number, count)
        case "try_wait" | "test_wait":
            parity = symbolic_values.form(context, state, scope, node.operands[1]).number()
            if parity is None:
                raise Unsupported("a phase whose parity is not known")
            _wait(context, node, state, scope, number, parity)
        case _:
            raise Unsupported(f"the instruction {node.name}")


def _init(context: WalkContext, state: WalkState, number: int, count: int | None) -> None:
    clocks, barriers = parts(state)
    threads = context.active(state)
    if count is None or state.guard:
        raise Unsupported("an mbarrier whose arrivals are not known")
    wrong = threads.size != 1 or bool(barriers.count[number])
    context.check(state, "barriers", wrong, "an mbarrier is initialized twice")
    barriers.count[number] = barriers.pending[number] = count
    barriers.starter[number] = warp = int(threads[0]) // WARP
    barriers.begun[number] = clocks.now[warp]


def check_begun(context: WalkContext, state: WalkState, number: int, use: str = "") -> None:
    """That the mbarrier is initialized, and that who is here knows of it."""
    clocks, barriers = parts(state)
    context.check(
        state, "barriers", not barriers.count[number], "no thread initialized the mbarrier"
    )
    warps = np.unique(context.active(state) // WARP)
    starter = int(barriers.starter[number])
    known = clocks.known[warps, starter] >= barriers.begun[number]
    about = "an mbarrier may be used before it is initialized"
    context.check(state, "barriers", not bool((known | (warps == starter)).all()), about)
    _agree(context, state, number, use)


def _agree(context: WalkContext, state: WalkState, number: int, use: str) -> None:
    """That here is so what the mbarrier's state assumes."""
    _, barriers = parts(state)
    guard = barriers.guards[number]
    if isinstance(guard, Pick):
        condition = guard.condition
        stated = condition_queries.is_stated(state.path, condition)
        if not (stated or context.theory.holds(state.path, condition, 1.0)):
            if use not in ("try_wait", "test_wait"):
                raise Unsupported("an mbarrier whose phase depends on sizes")
            about = "a thread may wait for a phase that no copy or arrival ends"
            context.claim(state, "barriers", condition, about)
    elif guard != ALWAYS:
        raise Unsupported("an mbarrier whose phase is not known here")
    if use == "test_wait" or (use == "try_wait" and state.guard):
        return  # the phase is the same whether a thread waits or not
    if state.guard or guard != ALWAYS:
        barriers.guards[number] = guarded(state, ALWAYS, NEVER)


def guarded(state: WalkState, value: Data, otherwise: Data) -> Data:
    """``value`` in the calls in which this branch is taken."""
    guard = conditions.all_of(*state.guard) if state.guard else YES
    return value if guard is YES else Pick(guard, value, otherwise)


def early_warps(context: WalkContext, state: WalkState, number: int) -> Ints:
    """The warps here that do not know that the phase before has ended."""
    clocks, barriers = parts(state)
    warps: Ints = np.unique(context.active(state) // WARP)
    known = clocks.known[warps, barriers.timed + barriers.warps + number]
    return warps[known < barriers.ended[number]]


def arrive(
    context: WalkContext, state: WalkState, number: int, count: int, loosely: bool = False
) -> None:
    """An arrival of each thread that is here, which expects ``count`` bytes; ``loosely``: it may
    count for another phase."""
    clocks, barriers = parts(state)
    threads = context.active(state)
    early = not loosely and early_warps(context, state, number).size > 0
    about = "a thread arrives that does not know whether the phase before has ended"
    context.check(state, "barriers", early, about)
    if count and clocks.timed:
        check_strict(state, number)
    for own in warp_clocks.of_warps(threads):
        passed_on = warp_clocks.arrive(clocks, state.traces, own)
        barriers.collected[number] = np.maximum(barriers.collected[number], passed_on)
    barriers.pending[number] -= threads.size
    barriers.bytes[number] += count * threads.size
    about = "more threads arrive than the phase needs"
    if context.check(state, "barriers", bool(barriers.pending[number] < 0), about):
        settle(context, state, number)
    about = f"a phase expects more than {MOST_BYTES:,} bytes"
    context.check(state, "barriers", bool(barriers.bytes[number] > MOST_BYTES), about)


def check_strict(state: WalkState, number: int) -> None:
    """That each arrival counts for its own phase: only then do the bytes."""
    _, barriers = parts(state)
    barriers.counts[number] = 1
    if barriers.loose[number]:
        raise Unsupported("bytes that a phase expects whose arrivals have no order")


def settle(context: WalkContext, state: WalkState, number: int) -> None:
    """Ends the phase if it lacks nothing."""
    clocks, barriers = parts(state)
    missing = barriers.settle(clocks, state.traces, number)
    if missing is not None:
        about = "a phase ends while threads may still wait for the one before"
        context.check(state, "barriers", missing.size > 0, about)


def _wait(
    context: WalkContext,
    node: Instruction,
    state: WalkState,
    scope: WalkScope,
    number: int,
    parity: int,
) -> None:
    clocks, barriers = parts(state)
    threads = context.active(state)
    warps = np.unique(threads // WARP)
    agent = barriers.timed + barriers.warps + number
    early = clocks.known[warps, agent] < barriers.before[number]
    about = "a thread waits that does not know whether the phase before the awaited one has ended"
    context.check(state, "barriers", bool(early.any()), about)
    own = number % (barriers.capacity // context.ranks)
    if node.name == "test_wait":
        key = scope.key(node.result)
        scope.names[node.result] = VariableSlot(key)
        barriers.tests[key] = own, parity
        return
    if node.predicate is not None and not _is_test(node.predicate, state, scope, own, parity):
        raise Unsupported("a wait under a condition that does not test it")
    lacks = (
        f"the awaited phase lacks {barriers.pending[number]} arrivals and "
        f"{barriers.bytes[number]} bytes"
    )
    if context.check(state, "barriers", bool(barriers.parity[number] == parity), lacks):
        for own in warp_clocks.of_warps(threads):
            warp = int(own[0]) // WARP
            warp_clocks.learn(clocks, own, barriers.passed[number])
            barriers.waited[number, warp] = clocks.now[barriers.timed + warp]
        barriers.open[number] = 0
        if barriers.pending[number] == barriers.count[number] and not barriers.loose[number]:
            barriers.remote[number] = 0


def _is_test(predicate: Expr, state: WalkState, scope: WalkScope, number: int, parity: int) -> bool:
    """Whether it says that a test of the same phase has failed."""
    if not (isinstance(predicate, Unary) and isinstance(predicate.operand, Var)):
        return False
    slot = scope.names.get(predicate.operand.name)
    _, barriers = parts(state)
    return isinstance(slot, VariableSlot) and barriers.tests.get(slot.key) == (number, parity)
