"""Boxes that TMA stores: it copies them from shared memory to C."""

from __future__ import annotations

import numpy as np

from gemmgen.ir.expr import Element, Var
from gemmgen.ir.instruction import Instruction
from gemmgen.numerics.operators import Ints
from gemmgen.prove import (
    async_accesses,
    barrier_phases,
    boxes,
    condition_queries,
    polynomials,
    settled_values,
    shared_accesses,
    shared_state,
    symbolic_values,
)
from gemmgen.prove.data import TensorElement
from gemmgen.prove.integers import Unsupported
from gemmgen.prove.polynomials import Polynomial
from gemmgen.prove.state import SharedPlace, WalkScope, WalkState
from gemmgen.prove.walk_context import OutputStore, WalkContext

STORES = (
    "stores it while a copy is in flight to it",
    "stores what the other writes",
    "stores what the other stores",
    "stores it before a fence.proxy.async of who wrote it",
)
"""What is wrong with a store by TMA: ``async_accesses.begin_store`` says where."""


def store_box(context: WalkContext, node: Instruction, state: WalkState, scope: WalkScope) -> None:
    """TMA begins to copy a box to C; what is outside C it does not write."""
    for rank, own in context.by_rank(state):
        _store(context, node, own, scope, rank)


def _store(
    context: WalkContext, node: Instruction, state: WalkState, scope: WalkScope, rank: int
) -> None:
    """The same in one block of a cluster."""
    of_map, source, *at = node.operands
    assert isinstance(source, Element) and isinstance(of_map, Var)
    threads = context.active(state)
    if threads.size != 1 or not all(map(condition_queries.is_uniform, state.path)):
        raise Unsupported("a store of a box by several threads")
    thread = int(threads[0])
    place = symbolic_values.located(context, state, scope, source)
    (found,) = (one for one in context.interface.maps if one.parameter == of_map.name)
    param = context.interface.mapped(found)
    if not isinstance(place, SharedPlace) or param.name != context.output.name:
        raise Unsupported(f"a store of a box to {of_map.name}")
    starts = [symbolic_values.form(context, state, scope, each) for each in at]
    cells = boxes.cells_of(context, state, place, found, thread)
    trace = state.cells[place.name].trace
    if cells is None:
        return
    cells = shared_accesses.copy_of(context, place.name, cells, rank)
    if trace is None:
        raise Unsupported("a store of a box without mbarriers")
    clocks, _ = barrier_phases.parts(state)
    whys = async_accesses.begin_store(clocks, trace, cells, thread)
    boxes.report(context, state, place.name, cells, thread, whys, STORES)
    state.cells[place.name].reader_at[cells] = context.statement()
    if not context.ledger.quiet:
        own = [polynomials.of_thread(start, thread) for start in starts]
        for first in range(0, cells.size, context.threads):
            numbers = first + context.every
            _save(context, state, place.name, found.box, own, numbers, cells)


def _save(
    context: WalkContext,
    state: WalkState,
    name: str,
    box: tuple[int, ...],
    starts: list[Polynomial],
    numbers: Ints,
    cells: Ints,
) -> None:
    """The store of some elements of a box, as if each were a thread's: one for the elements that
    have values of one form."""
    inside = numbers < cells.size
    mask = None if inside.all() else inside
    numbers = np.where(inside, numbers, 0)
    at = boxes.indices(context.output, box, starts, numbers)
    inside_c = settled_values.inside_tensor(context, TensorElement(context.output.name, at))
    context.ledger.count("global bounds")
    path = (*state.path, inside_c)
    held = state.cells[name]
    for alike in shared_state.alike(held, context.events, cells[numbers], mask):
        value = shared_state.content(held, context.events, cells[numbers], alike)
        context.stores.append(OutputStore(at, value, path, alike, context.where))


def commit(context: WalkContext, state: WalkState) -> None:
    for trace in state.traces:
        async_accesses.commit_stores(trace, context.active(state))


def wait(context: WalkContext, node: Instruction, state: WalkState, scope: WalkScope) -> None:
    """Waits until TMA has read all but the last groups."""
    pending = symbolic_values.form(context, state, scope, node.operands[0]).number()
    if pending is None:
        raise Unsupported("stores in a number of groups that is not known")
    clocks, _ = barrier_phases.parts(state)
    for trace in state.traces:
        async_accesses.await_stores(clocks, trace, context.active(state), pending)
