"""The partial accumulators of a tile, which one block for each part writes to a workspace; the
block that counts last adds them.

The parts are few, so each is walked, from the last one on: up to the count all but the first, which
goes on as the last block.  Nothing that differs from part to part is known of that one.  Where
parts reduce in groups, the first part of each group goes on as the last block of its group, up to
the count of the groups.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gemmgen.ir.thread_code import CountArrival
from gemmgen.prove import block_end, conditions, polynomials, shared_state, symbolic_values
from gemmgen.prove.conditions import Truth
from gemmgen.prove.data import UnknownData
from gemmgen.prove.integers import Unsupported
from gemmgen.prove.partials import Partials
from gemmgen.prove.polynomials import Polynomial
from gemmgen.prove.state import GlobalPlace, VariableSlot, WalkScope, WalkState, is_integer
from gemmgen.prove.walk_context import WalkContext

MOST_PARTS = 16
OF_ONE_PART = UnknownData("a number that differs from part to part")


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
    if partials is None or node.alone:
        raise Unsupported("a count of blocks")
    if state.path or state.pending is not None or state.clocks is not None:
        raise Unsupported("a count of blocks under a condition, or beside mbarriers")
    about = "some threads of the block do not come to the count"
    context.check(state, "barriers", state.mask is not None, about)
    _check_count(context, node, state, scope, partials)
    for cells in state.cells.values():
        shared_state.meet(cells)
    first = partials.part % partials.together if partials.in_group else partials.part
    counter = partials.group if partials.in_group else partials.groups
    ends = partials.ends.setdefault(counter, [])
    if first:
        block_end.check(context, state)
        ends.append(dict(state.slots))
        return []
    _go_on(context, state, scope, ends)
    partials.go_on()
    key = scope.key(node.name)
    state.slots[key] = conditions.YES
    scope.names[node.name] = VariableSlot(key)
    return [state]


def _check_count(
    context: WalkContext,
    node: CountArrival,
    state: WalkState,
    scope: WalkScope,
    partials: Partials,
) -> None:
    chosen = symbolic_values.truth(context, state, scope, node.chosen)
    if not isinstance(chosen, Truth):
        raise Unsupported("a count by a thread that depends on sizes")
    times = int(np.count_nonzero(np.broadcast_to(chosen.value, (context.threads,))))
    context.check(state, "races", times != 1, f"a block counts {times} times")
    counter = symbolic_values.located(context, state, scope, node.counter)
    place = _counter(context, partials)
    own = isinstance(counter, GlobalPlace) and polynomials.same(counter.offset, place)
    what = "group" if partials.in_group else "tile"
    context.check(state, "races", not own, f"a block counts for another {what}")
    last = symbolic_values.form(context, state, scope, node.last).number()
    others = partials.together if partials.in_group or partials.groups == 1 else partials.groups
    about = f"a block goes on after {last} others have counted, of {others - 1}"
    context.check(state, "races", last != others - 1, about)
    about = "partial accumulators may be written after the block has counted"
    context.check(state, "races", partials.unordered, about)


def _counter(context: WalkContext, partials: Partials) -> Polynomial:
    """Where a tile's counter is: those of its groups come before its own."""
    if partials.groups == 1:
        return context.grid.tile
    first = polynomials.scale(context.grid.tile, partials.groups + 1)
    number = partials.group if partials.in_group else partials.groups
    return polynomials.add(first, polynomials.fixed(number))


def _go_on(
    context: WalkContext, state: WalkState, scope: WalkScope, ends: list[dict[str, object]]
) -> None:
    """``state`` without what differs from part to part."""
    for key, value in state.slots.items():
        if not all(key in end and _same(value, end[key]) for end in ends):
            state.slots[key] = OF_ONE_PART
    state.registers = dict.fromkeys(state.registers, OF_ONE_PART)
    for cells in state.cells.values():
        cells.event.fill(shared_state.NONE)
    scope.names["blockIdx.x"] = OF_ONE_PART
    context.grid = replace(context.grid, block=context.theory.symbol("last block"))


def _same(value: object, other: object) -> bool:
    if isinstance(value, Polynomial) and isinstance(other, Polynomial):
        return polynomials.same(value, other)
    return not is_integer(value) and value == other
