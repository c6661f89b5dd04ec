"""Accesses of the workspace: the partial accumulators that a block writes for its part of a tile,
or adds to those of the others, and that the last block reads."""

from __future__ import annotations

import numpy as np

from gemmgen.ir.param import Param
from gemmgen.numerics.operators import Ints
from gemmgen.prove import (
    data,
    joined_totals,
    polynomials,
    shared_state,
)
from gemmgen.prove.data import Data, TermTotals, Total, UnknownData
from gemmgen.prove.integers import Unsupported
from gemmgen.prove.partials import Partials
from gemmgen.prove.shared_state import NONE, SEVERAL, Cells, new_cells
from gemmgen.prove.state import GlobalPlace, WalkState
from gemmgen.prove.walk_context import WalkContext

TILE = 0
"""The number of the tile that blocks add to."""


def save(context: WalkContext, state: WalkState, place: GlobalPlace, values: list[Data]) -> None:
    partials = _partials(context, place.param)
    part, at = _located(context, state, partials, place, len(values))
    own = TILE if partials.added else partials.part
    about = "the partial accumulators of another part are written"
    if not context.check(state, "races", part != own, about):
        return
    if state.path or state.pending is not None:
        raise Unsupported("partial accumulators that are written under a condition")
    threads = context.active(state)
    cells = _cells(context, place.param, partials, part)
    if partials.added:
        _zero(context, state, partials, at, values)
    for e, value in enumerate(values):
        own_at = at[threads] + e
        twice = (cells.writer[own_at] != NONE) & (cells.writer[own_at] != threads)
        cells.writer[own_at] = threads
        twice |= cells.writer[own_at] != threads
        about = "two threads write one partial sum"
        context.check(state, "races", bool(twice.any()), about)
        _check_readers(context, state, partials, part, own_at, threads)
        shared_state.store(cells, context.events.add(value), own_at, threads)
    partials.wrote(threads)


def add(context: WalkContext, state: WalkState, place: GlobalPlace, value: Data) -> None:
    """Each thread adds ``value`` to an element, atomically."""
    partials = _partials(context, place.param)
    if not partials.added or partials.visible:
        raise Unsupported("an addition to partial accumulators that are not those of all parts")
    if state.path or state.pending is not None:
        raise Unsupported("partial accumulators that are added to under a condition")
    part, at = _located(context, state, partials, place, 1)
    threads = context.active(state)
    own = at[threads]
    about = "two threads of a block add to one partial sum"
    if not context.check(state, "races", np.unique(own).size < own.size, about):
        return
    cells = _cells(context, place.param, partials, part)
    known = shared_state.content(cells, context.events, at, state.mask)
    if not isinstance(value, Total | TermTotals | UnknownData) and value != data.ZERO:
        raise Unsupported(f"{data.shown(value, 0)} in place of a partial sum")
    if value == data.ZERO:
        value = known
    elif known != data.ZERO and isinstance(value, Total | TermTotals):
        assert isinstance(known, Total | TermTotals | UnknownData)
        value = joined_totals.joined(context, state, value, known)
    shared_state.store(cells, context.events.add(value), own, threads)
    partials.wrote(threads)


def load(context: WalkContext, state: WalkState, place: GlobalPlace, width: int) -> list[Data]:
    partials = _partials(context, place.param)
    part, at = _located(context, state, partials, place, width)
    about = "partial accumulators are read before all blocks have counted"
    context.check(state, "races", part not in partials.visible, about)
    _check_acquired(context, state, partials)
    if part not in partials.written:
        return [shared_state.NEVER] * width
    cells, threads = partials.written[part], context.active(state)
    readers = partials.readers.setdefault(part, np.full(cells.event.size, NONE, np.int64))
    for e in range(width):
        own = at[threads] + e
        several = (readers[own] != NONE) & (readers[own] != threads)
        readers[own] = threads
        several |= readers[own] != threads
        readers[own[several]] = SEVERAL
    return [shared_state.content(cells, context.events, at + e, state.mask) for e in range(width)]


def check_left(context: WalkContext, state: WalkState) -> None:
    """That what must be zero in the next call is."""
    partials = context.partials
    if partials is not None and partials.added:
        about = "a partial sum is not zero at the next call"
        left = not partials.zeroed.size or not partials.zeroed.all()
        context.check(state, "products", left, about)


def _check_acquired(context: WalkContext, state: WalkState, partials: Partials) -> None:
    """That the block's count is before what the threads here do."""
    early = not partials.acquired[context.active(state)].all()
    about = "partial accumulators are accessed by threads that do not know of the block's count"
    context.check(state, "races", bool(partials.visible) and early, about)


def _zero(
    context: WalkContext, state: WalkState, partials: Partials, at: Ints, values: list[Data]
) -> None:
    about = "a partial sum that others add to is written"
    context.check(state, "races", not partials.visible, about)
    _check_acquired(context, state, partials)
    if any(value != data.ZERO for value in values):
        raise Unsupported("a partial sum that is not left at zero")
    for e in range(len(values)):
        partials.zeroed[at[context.active(state)] + e] = True


def _check_readers(
    context: WalkContext, state: WalkState, partials: Partials, part: int, at: Ints, threads: Ints
) -> None:
    if part not in partials.readers:
        return
    readers = partials.readers[part][at]
    about = "a partial sum is written while another thread may read it"
    wrong = (readers != NONE) & (readers != threads)
    context.check(state, "races", bool(wrong.any()), about)


def _partials(context: WalkContext, param: Param) -> Partials:
    if context.partials is None or param.kind != "workspace":
        raise Unsupported(f"the {param.kind} {param.name}")
    return context.partials


def _cells(context: WalkContext, param: Param, partials: Partials, part: int) -> Cells:
    if part not in partials.written:
        cells = partials.written[part] = new_cells(context.ranks * _count(param, partials))
        if partials.added:
            every = np.arange(cells.event.size)
            shared_state.store(cells, context.events.add(data.ZERO), every, np.zeros_like(every))
            partials.zeroed = np.zeros(cells.event.size, np.bool_)
    return partials.written[part]


def _count(param: Param, partials: Partials) -> int:
    """Elements of a part's tile."""
    return param.per_tile if partials.added else param.per_tile // partials.parts


def _located(
    context: WalkContext, state: WalkState, partials: Partials, place: GlobalPlace, width: int
) -> tuple[int, Ints]:
    """The part and, for each thread, the number of an element in it."""
    size, ranks = _count(place.param, partials), context.ranks
    for part in [TILE] if partials.added else range(partials.parts):
        own = polynomials.scale(context.grid.of_part(part), ranks * size)
        rest = polynomials.subtract(place.offset, own)
        if rest.concrete:
            break
    else:
        shown = polynomials.text(place.offset)
        raise Unsupported(f"partial accumulators at {shown}, outside each part of the tile")
    at = data.numbers(rest.constant, context.threads)
    about = f"{place.param.name} is accessed outside the tile's part"
    first = context.rank * size
    wrong = (at < first) | (at + width > first + size)
    context.check(state, "global bounds", wrong, about)
    about = f"{place.param.name} is accessed at no multiple of {width} elements"
    context.check(state, "alignment", at % width != 0, about)
    return part, np.clip(at, 0, ranks * size - width)
