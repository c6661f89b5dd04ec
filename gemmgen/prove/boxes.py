"""Boxes that TMA copies to shared memory."""

from __future__ import annotations

from math import prod
from typing import cast

import numpy as np

from gemmgen.interpreter.boxes import permuted
from gemmgen.ir.blocked_letters import block
from gemmgen.ir.dtypes import BYTES
from gemmgen.ir.expr import Element, Expr, Var
from gemmgen.ir.instruction import Instruction
from gemmgen.ir.param import Param
from gemmgen.ir.target import WARP
from gemmgen.ir.tensor_map import ALIGNMENT, LANDS_AT, TensorMap
from gemmgen.numerics.operators import Bools, Ints
from gemmgen.prove import (
    async_accesses,
    barrier_phases,
    block_scales,
    conditions,
    data,
    polynomials,
    shared_accesses,
    shared_state,
    symbolic_values,
    warp_clocks,
)
from gemmgen.prove.data import Data, TensorElement, UnknownData
from gemmgen.prove.integers import Unsupported
from gemmgen.prove.polynomials import Polynomial
from gemmgen.prove.state import SharedPlace, WalkScope, WalkState
from gemmgen.prove.walk_context import WalkContext

LOADS = (
    "copies to it while another copy is in flight to it",
    "copies to what the other writes",
    "copies to what the other reads",
    "copies to it before a fence.proxy.async of who accessed it",
)
"""What is wrong with a copy by TMA: ``async_accesses.begin_copy`` says where."""
UNLOADED = UnknownData("an element that TMA does not load", certain=True)


def load_box(context: WalkContext, node: Instruction, state: WalkState, scope: WalkScope) -> None:
    """TMA begins to copy a box; the mbarrier counts its bytes."""
    for rank, own in context.by_rank(state):
        _load(context, node, own, scope, rank)


def _load(
    context: WalkContext, node: Instruction, state: WalkState, scope: WalkScope, rank: int
) -> None:
    """The same in one block of a cluster; a copy to several blocks is one to each of them."""
    target, of_map, barrier, *at = node.operands
    assert isinstance(target, Element) and isinstance(of_map, Var)
    threads = context.active(state)
    if threads.size != 1:
        raise Unsupported("a copy of a box by several threads")
    thread, ranks = int(threads[0]), [rank]
    if node.name == "multicast_box":
        if context.partials is not None and context.partials.counts:
            raise Unsupported("a copy to another block that may have ended")
        ranks = _ranks(context, state, scope, at.pop(), thread)
    place = symbolic_values.located(context, state, scope, target)
    number = barrier_phases.number_of(context, state, scope, barrier)
    if not isinstance(place, SharedPlace) or number is None:
        raise Unsupported(f"a box in {target.buffer}")
    (found,) = (one for one in context.interface.maps if one.parameter == of_map.name)
    starts = [symbolic_values.form(context, state, scope, each) for each in at]
    param = context.interface.mapped(found)
    if param.name in context.scale_tensors:
        at = _of_elements(param, found, at)
    own = [symbolic_values.form(context, state, scope, each) for each in at]
    starts, own = ([polynomials.of_thread(s, thread) for s in each] for each in (starts, own))
    value = _loaded(context, state, found, starts, own)
    cells = cells_of(context, state, place, found, thread)
    if cells is None:
        return
    for one in ranks:
        there = barrier_phases.of_rank(context, state, number, one)
        own = shared_accesses.copy_of(context, place.name, cells, one)
        _land(context, state, place.name, own, there, value)


def _ranks(
    context: WalkContext, state: WalkState, scope: WalkScope, blocks: Expr, thread: int
) -> list[int]:
    """The blocks that a box is copied to: a bit of ``blocks`` for each."""
    form = symbolic_values.form(context, state, scope, blocks)
    bits = polynomials.of_thread(form, thread).number()
    if bits is None:
        raise Unsupported("a copy of a box to blocks that are not known")
    wrong = not 0 < bits < 1 << context.ranks
    about = f"a box is copied to the blocks {bits:#b} of a cluster of {context.ranks}"
    context.check(state, "barriers", wrong, about)
    return [rank for rank in range(context.ranks) if bits >> rank & 1]


def _land(
    context: WalkContext, state: WalkState, name: str, cells: Ints, number: int, value: Data
) -> None:
    """A copy to these elements begins, which this mbarrier counts."""
    clocks, barriers = barrier_phases.parts(state)
    thread = int(context.active(state)[0])
    place, array = state.cells[name], shared_accesses.array_of(context, name)
    barrier_phases.check_begun(context, state, number)
    seen = bool(barriers.fenced[number])
    context.check(state, "barriers", not seen, "TMA may not see that the mbarrier is initialized")
    early = barrier_phases.early_warps(context, state, number).size > 0
    about = "a box is copied before the phase that counts it is known to have begun"
    context.check(state, "barriers", early, about)
    if clocks.timed:
        barrier_phases.check_strict(state, number)
        passed_on = warp_clocks.issue(clocks, thread // WARP)
        barriers.collected[number] = np.maximum(barriers.collected[number], passed_on)
    trace = place.trace
    assert trace is not None
    whys = async_accesses.begin_copy(clocks, trace, cells, thread, number)
    report(context, state, name, cells, thread, whys, LOADS)
    place.writer_at[cells] = context.statement()
    shared_state.store(
        place,
        context.events.add(barrier_phases.guarded(state, value, UNLOADED)),
        cells,
        np.arange(cells.size),
    )
    barriers.bytes[number] -= cells.size * BYTES[array.dtype]
    about = f"a phase counts more than {barrier_phases.MOST_BYTES:,} bytes that it does not expect"
    wrong = bool(barriers.bytes[number] < -barrier_phases.MOST_BYTES)
    context.check(state, "barriers", wrong, about)
    barrier_phases.settle(context, state, number)


def _of_elements(param: Param, found: TensorMap, at: list[Expr]) -> list[Expr]:
    """Where a box of scales begins, by the elements that they are factors of."""
    letters = [*reversed(param.indices)]
    if any(block(x) > 1 and side > 1 for x, side in zip(letters, found.box, strict=True)):
        raise Unsupported("a box of several blocks of scales")
    return [block_scales.element_index(x, letter) for x, letter in zip(at, letters, strict=True)]


def _loaded(
    context: WalkContext,
    state: WalkState,
    found: TensorMap,
    starts: list[Polynomial],
    own: list[Polynomial],
) -> Data:
    """The elements of a box, the first dimension innermost; it begins at ``starts``, and has the
    elements from ``own`` on, or their scales."""
    param = context.interface.mapped(found)
    first = starts[0]
    unit = ALIGNMENT // param.item
    if any(np.any(np.asarray(value) % unit) for value in first.terms.values()):
        aligned = conditions.Multiple(first, unit)
        context.claim(
            state, "alignment", aligned, f"a box begins at no multiple of {ALIGNMENT} bytes"
        )
    context.ledger.count("alignment")
    context.ledger.count("global bounds")
    numbers = np.arange(prod(found.box))
    if param.planes is None:
        return TensorElement(param.name, indices(param, found.box, own, numbers))
    *inside, plane = starts
    source = param.planes.source
    whole = next(p for p in context.interface.tensors if p.name == source)
    term = plane.number()
    if term is None or found.box[-1] != 1:
        raise Unsupported("a box of several planes")
    return TensorElement(whole.name, indices(whole, found.box[:-1], inside, numbers), term)


def indices(
    param: Param, box: tuple[int, ...], starts: list[Polynomial], numbers: Ints
) -> data.Place:
    """The place of some elements of a box, by their numbers in it."""
    apart, at = 1, dict[str, Polynomial]()
    for letter, start, side in zip(reversed(param.indices), starts, box, strict=True):
        own = cast("polynomials.Coefficient", numbers // apart % side)
        at[letter] = polynomials.add(start, polynomials.fixed(own))
        apart *= side
    return tuple((letter, at[letter]) for letter in param.indices)


def cells_of(
    context: WalkContext, state: WalkState, place: SharedPlace, found: TensorMap, thread: int
) -> Ints | None:
    """Where the elements of a box lie in shared memory."""
    array = shared_accesses.array_of(context, place.name)
    begin = shared_accesses.cells_of(context, state, place)
    if begin is None:
        return None
    first = int(np.broadcast_to(begin, context.threads)[thread])
    size = BYTES[array.dtype]
    wrong = first * size % LANDS_AT != 0 or array.aligned % LANDS_AT != 0
    about = f"a box lands in {place.name} at no multiple of {LANDS_AT} bytes"
    context.check(state, "alignment", wrong, about)
    cells = permuted(first + np.arange(prod(found.box)), size, array.aligned, found.swizzle)
    outside = bool((cells < 0).any() or (cells >= prod(array.sizes)).any())
    about = f"a box goes beyond the end of {place.name}"
    return cells if context.check(state, "shared bounds", outside, about) else None


def report(
    context: WalkContext,
    state: WalkState,
    name: str,
    cells: Ints,
    thread: int,
    whys: tuple[Bools, Bools, Bools, Bools],
    texts: tuple[str, str, str, str],
) -> None:
    context.ledger.count("races")
    own = state.cells[name]
    for where, what in zip(whys, texts, strict=True):
        if where.any():
            cell = int(cells[int(np.argmax(where))])
            by = own.reader_at if what.endswith("reads") else own.writer_at
            conflict = shared_state.Conflict(cell, thread, shared_state.NONE, int(by[cell]), what)
            shown = shared_accesses.described(context, name, conflict)
            context.violated(state, "races", shown, thread)
            break
