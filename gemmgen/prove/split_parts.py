"""The partial accumulators of a tile, which one block for each part writes to a workspace; the
block that counts last adds them.

The parts are few, so each is walked, from the last one on: up to the count all but the first, which
goes on as the last block.  Nothing that differs from part to part is known of that one.  Where
parts reduce in groups, the first part of each group goes on as the last block of its group, up to
the count of the groups.

Of two parts without groups, the last block may use the number of its own: both orders are walked.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gemmgen.ir.thread_code import CountArrival
from gemmgen.numerics.operators import Bools
from gemmgen.prove import (
    block_end,
    conditions,
    data,
    equal_orders,
    invariants,
    polynomials,
    shared_state,
    symbolic_values,
    warp_clocks,
)
from gemmgen.prove.conditions import Condition, Truth
from gemmgen.prove.data import TermTotals, Total, UnknownData
from gemmgen.prove.integers import Unsupported
from gemmgen.prove.partials import Partials
from gemmgen.prove.polynomials import Polynomial
from gemmgen.prove.state import GlobalPlace, VariableSlot, WalkScope, WalkState, is_integer
from gemmgen.prove.walk_context import WalkContext

MOST_PARTS = 16
OF_ONE_PART = UnknownData("a number that differs from part to part")


def orders(partials: Partials) -> list[list[int]]:
    """The orders in which the blocks of a tile's parts are walked; the last one goes on.

    Each of two may be the last one, with its own number.  Of more, one is walked for all: what
    differs from part to part is forgotten of it.
    """
    down = [*range(partials.parts - 1, -1, -1)]
    return [down, down[::-1]] if partials.is_pair else [down]


def begin(context: WalkContext, partials: Partials, part: int) -> None:
    """The next block is that of ``part``."""
    if partials.parts > MOST_PARTS:
        raise Unsupported(f"split_k: {partials.parts} parts, of at most {MOST_PARTS}")
    partials.begin(part)
    context.grid = replace(context.grid, block=context.grid.of_part(part))


def count(
    context: WalkContext, node: CountArrival, state: WalkState, scope: WalkScope
) -> list[WalkState]:
    """The last block goes on; the others have ended."""
    partials = context.partials
    if partials is None:
        raise Unsupported("a count of blocks")
    if state.path or state.pending is not None:
        raise Unsupported("a count of blocks under a condition")
    if not node.alone:
        about = "some threads of the block do not come to the count"
        context.check(state, "barriers", state.mask is not None, about)
    chosen = _chosen(context, node, state, scope)
    _check_count(context, node, state, scope, partials, chosen)
    if not node.alone:
        _meet(context, state)
    block_end.check(context, state)
    counter = partials.group if partials.in_group else partials.groups
    ends = partials.ends.setdefault(counter, [])
    if not partials.goes_on:
        ends.append(state)
        return []
    if not partials.is_pair:
        _go_on(context, state, scope, ends)
    every = np.ones(context.threads, np.bool_)
    partials.go_on(chosen if node.alone else every)
    key = scope.key(node.name)
    state.slots[key] = conditions.Truth(chosen) if node.alone else conditions.YES
    scope.names[node.name] = VariableSlot(key)
    return [state]


def joined(
    context: WalkContext, states: list[WalkState], path: tuple[Condition, ...]
) -> list[WalkState]:
    """One state after a loop for all ``states``, with what they have in common; all that can be
    where ``path`` holds come from one state before.

    So a block that has no products of its part has the sum over no index.
    """
    is_plain = all(not (state.broken or state.left or state.pending) for state in states)
    if len(states) < 2 or not is_plain or any(state.clocks is not None for state in states):
        return states
    if any(each.mask is not states[0].mask or each.multiplying for each in states):
        return states
    known = [i for i, state in enumerate(states) if _has_totals(state)]
    one = states.pop(known[0] if known else 0)
    for other in states:
        one.slots = {key: value for key, value in one.slots.items() if key in other.slots}
        one.registers = {
            key: value for key, value in one.registers.items() if key in other.registers
        }
        invariants.weaken(context, one, other, lambda form: form)
    one.path, context.exact = path, False
    return [one]


def _has_totals(state: WalkState) -> bool:
    return any(isinstance(value, Total | TermTotals) for value in state.registers.values())


def _meet(context: WalkContext, state: WalkState) -> None:
    """The barrier that publishes the result."""
    for cells in state.cells.values():
        shared_state.meet(cells)
    if state.clocks is not None:
        for warps in np.split(np.arange(state.clocks.warps), context.ranks):
            warp_clocks.meet(state.clocks, state.traces, warps)


def _chosen(context: WalkContext, node: CountArrival, state: WalkState, scope: WalkScope) -> Bools:
    """The threads that count."""
    found = symbolic_values.truth(context, state, scope, node.chosen)
    if not isinstance(found, Truth):
        raise Unsupported("a count by a thread that depends on sizes")
    every = np.zeros(context.threads, np.bool_)
    every[context.active(state)] = True
    return every & found.value


def _check_count(
    context: WalkContext,
    node: CountArrival,
    state: WalkState,
    scope: WalkScope,
    partials: Partials,
    chosen: Bools,
) -> None:
    about = "partial accumulators may be written after the block has counted"
    for rank in range(context.ranks):
        block: Bools = context.rank == rank
        own = np.flatnonzero(block & chosen)
        context.check(state, "races", own.size != 1, f"a block counts {own.size} times")
        if own.size == 1:
            context.check(state, "races", not partials.is_ordered(int(own[0]), block), about)
    counter = symbolic_values.located(context, state, scope, node.counter)
    place = _counter(context, partials)
    is_own = isinstance(counter, GlobalPlace) and not np.any(
        polynomials.differing(counter.offset, place) & chosen
    )
    what = "group" if partials.in_group else "tile"
    context.check(state, "races", not is_own, f"a block counts for another {what}")
    last = symbolic_values.form(context, state, scope, node.last).number()
    others = partials.together if partials.in_group or partials.groups == 1 else partials.groups
    about = f"a block goes on after {last} others have counted, of {others - 1}"
    context.check(state, "races", last != others - 1, about)


def _counter(context: WalkContext, partials: Partials) -> Polynomial:
    """Where a tile's counter is: those of its groups come before its own."""
    tile = context.grid.of_rank(context.grid.tile, context.rank)
    if partials.groups == 1:
        return tile
    first = polynomials.scale(tile, partials.groups + 1)
    number = partials.group if partials.in_group else partials.groups
    return polynomials.add(first, polynomials.fixed(number))


def _go_on(context: WalkContext, state: WalkState, scope: WalkScope, ends: list[WalkState]) -> None:
    """``state`` without what differs from part to part."""
    for key, value in state.slots.items():
        if not all(key in end.slots and _same(value, end.slots[key]) for end in ends):
            state.slots[key] = OF_ONE_PART
    state.registers = dict.fromkeys(state.registers, OF_ONE_PART)
    for cells in state.cells.values():
        cells.event.fill(shared_state.NONE)
    if state.barriers is not None:
        equal_orders.joined_order([state, *ends])
        state.barriers.guards = [equal_orders.UNKNOWN for _ in state.barriers.guards]
    scope.names["blockIdx.x"] = OF_ONE_PART
    context.grid = replace(context.grid, block=context.theory.symbol("last block"))


def _same(value: object, other: object) -> bool:
    if isinstance(value, Polynomial) and isinstance(other, Polynomial):
        return polynomials.same(value, other)
    if is_integer(value) or is_integer(other):
        return False
    one, two = (isinstance(each, symbolic_values.CONDITIONS) for each in (value, other))
    if one or two:
        return one and two and conditions.signature(value) == conditions.signature(other)  # type: ignore[arg-type]  # conditions, by the line above
    return data.same(value, other)  # type: ignore[arg-type]  # no integer and no condition
