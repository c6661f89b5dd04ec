"""PTX instructions that all lanes of a block, or of a warp, execute."""

from __future__ import annotations

import numpy as np

from gemmgen.ir.expr import Element
from gemmgen.ir.instruction import Instruction
from gemmgen.ir.instruction_table import NO_VALUE
from gemmgen.ir.target import WARP
from gemmgen.prove import (
    async_accesses,
    barrier_phases,
    box_stores,
    boxes,
    clusters,
    condition_queries,
    conditions,
    element_accesses,
    lane_matrices,
    named_barriers,
    part_accesses,
    polynomials,
    shared_accesses,
    shared_state,
    symbolic_values,
    warp_clocks,
    warp_products,
    warpgroup_products,
)
from gemmgen.prove.conditions import Condition
from gemmgen.prove.integers import Unsupported
from gemmgen.prove.state import GlobalPlace, SharedPlace, WalkScope, WalkState
from gemmgen.prove.walk_context import WalkContext


def execute(context: WalkContext, node: Instruction, state: WalkState, scope: WalkScope) -> None:
    if node.predicate is not None and node.name not in ("try_wait", "test_wait"):
        raise Unsupported(f"the instruction {node.name} with a predicate")
    match node.name:
        case "sync_block":
            _barrier(context, state)
        case "commit_group":
            uniform(context, state, "a group of copies is committed by some threads only")
            for cells in state.cells.values():
                shared_state.commit(cells)
        case "wait_group":
            uniform(context, state, "some threads only wait for copies")
            pending = symbolic_values.form(context, state, scope, node.operands[0]).number()
            assert pending is not None
            for cells in state.cells.values():
                shared_state.wait(cells, pending, context.statement())
        case "copy_async":
            _copy(context, node, state, scope)
        case "sync_warps" | "sync_warps_or":
            named_barriers.sync_warps(context, node, state, scope)
        case "sync_warp":
            warp_products.sync_warp(context, state)
        case "fence_async":
            for trace in state.traces:
                async_accesses.fence(trace, np.unique(context.active(state) // WARP))
        case "load_box" | "multicast_box":
            boxes.load_box(context, node, state, scope)
        case "store_box":
            box_stores.store_box(context, node, state, scope)
        case "commit_boxes":
            box_stores.commit(context, state)
        case "await_boxes":
            box_stores.wait(context, node, state, scope)
        case "init_barrier" | "fence_barrier_init" | "arrive" | "expect_bytes":
            barrier_phases.execute(context, node, state, scope)
        case "try_wait" | "test_wait":
            barrier_phases.execute(context, node, state, scope)
        case "arrive_at":
            clusters.arrive_at(context, node, state, scope)
        case "sync_cluster":
            if not scope.role:
                uniform(context, state, clusters.NOT_ALL)
            clusters.sync(context, state, scope)
        case "add":
            _add(context, node, state, scope)
        case "ldmatrix":
            lane_matrices.load(context, node, state, scope)
        case "stmatrix":
            lane_matrices.store(context, node, state, scope)
        case "mma":
            lane_matrices.mma(context, node, state, scope)
        case name if name in warpgroup_products.NAMES:
            warpgroup_products.execute(context, node, state, scope)
        case _ if node.row.effect in NO_VALUE:
            pass
        case _:
            raise Unsupported(f"the instruction {node.name}")


def uniform(context: WalkContext, state: WalkState, about: str) -> None:
    """That all threads of the block, or none, are here."""
    context.check(state, "barriers", False, about)
    if state.mask is not None:
        context.violated(state, "barriers", about, int(np.argmin(state.mask)))
    apart = [one for one in state.path if not condition_queries.is_uniform(one)]
    together = tuple(one for one in state.path if condition_queries.is_uniform(one))
    for one in apart:
        base = state.branch()
        base.path, base.mask = together, None
        context.claim(base, "barriers", one, about)


def _barrier(context: WalkContext, state: WalkState) -> None:
    clusters.check_whole(context, state)
    uniform(context, state, "some threads of the block do not come to this barrier")
    if state.pending is not None:
        raise Unsupported("a barrier under a condition of each thread")
    for cells in state.cells.values():
        shared_state.meet(cells)
    if context.partials is not None:
        for rank in range(context.ranks):
            context.partials.meet(np.flatnonzero(context.rank == rank), whole=True)
    if state.clocks is not None:
        for warps in np.split(np.arange(state.clocks.warps), context.ranks):
            warp_clocks.meet(state.clocks, state.traces, warps)


def _add(context: WalkContext, node: Instruction, state: WalkState, scope: WalkScope) -> None:
    into, value = node.operands
    assert isinstance(into, Element)
    place = symbolic_values.located(context, state, scope, into)
    if not isinstance(place, GlobalPlace):
        raise Unsupported("an atomic addition to another memory")
    own = symbolic_values.number(context, state, scope, value)
    part_accesses.add(context, state, place, own)


def _copy(context: WalkContext, node: Instruction, state: WalkState, scope: WalkScope) -> None:
    into, source, count = node.operands
    assert isinstance(into, Element) and isinstance(source, Element)
    width = node.get("width")
    assert isinstance(width, int)
    target = symbolic_values.located(context, state, scope, into)
    origin = symbolic_values.located(context, state, scope, source)
    if not (isinstance(target, SharedPlace) and isinstance(origin, GlobalPlace)):
        raise Unsupported("an asynchronous copy between other memories")
    valid = symbolic_values.integer(context, state, scope, count)
    tests: list[Condition] = [
        conditions.over_choices(
            valid, lambda form, e=e: conditions.less(polynomials.fixed(e), form)
        )
        for e in range(width)
    ]
    values = element_accesses.load_global(context, state, origin, width, tests)
    shared_accesses.save(context, state, target, values, asynchronous=True)
