"""Accesses of the workspace: the partial accumulators that a block writes for its part of a tile,
and that the last block reads."""

from __future__ import annotations

import numpy as np

from gemmgen.ir.param import Param
from gemmgen.numerics.operators import Ints
from gemmgen.prove import data, polynomials, shared_state
from gemmgen.prove.data import Data
from gemmgen.prove.integers import Unsupported
from gemmgen.prove.partials import Partials
from gemmgen.prove.shared_state import new_cells
from gemmgen.prove.state import GlobalPlace, WalkState
from gemmgen.prove.walk_context import WalkContext


def save(context: WalkContext, state: WalkState, place: GlobalPlace, values: list[Data]) -> None:
    partials = _partials(context, place.param)
    part, at = _located(context, state, partials, place, len(values))
    about = "the partial accumulators of another part are written"
    if not context.check(state, "races", part != partials.part, about):
        return
    if state.path or state.pending is not None:
        raise Unsupported("partial accumulators that are written under a condition")
    threads = context.active(state)
    cells = partials.written.setdefault(part, new_cells(_count(place.param, partials)))
    for e, value in enumerate(values):
        own = at[threads] + e
        twice = (cells.writer[own] != shared_state.NONE) & (cells.writer[own] != threads)
        cells.writer[own] = threads
        twice |= cells.writer[own] != threads
        about = "two threads write one partial sum"
        context.check(state, "races", bool(twice.any()), about)
        shared_state.store(cells, context.events.add(value), own, threads)
    partials.unordered = True


def load(context: WalkContext, state: WalkState, place: GlobalPlace, width: int) -> list[Data]:
    partials = _partials(context, place.param)
    part, at = _located(context, state, partials, place, width)
    about = "partial accumulators are read before all blocks have counted"
    context.check(state, "races", not partials.complete, about)
    if part not in partials.written:
        return [shared_state.NEVER] * width
    cells = partials.written[part]
    return [shared_state.content(cells, context.events, at + e, state.mask) for e in range(width)]


def _partials(context: WalkContext, param: Param) -> Partials:
    if context.partials is None or param.kind != "workspace":
        raise Unsupported(f"the {param.kind} {param.name}")
    return context.partials


def _count(param: Param, partials: Partials) -> int:
    """Elements of a part's tile."""
    return param.per_tile // partials.parts


def _located(
    context: WalkContext, state: WalkState, partials: Partials, place: GlobalPlace, width: int
) -> tuple[int, Ints]:
    """The part and, for each thread, the number of an element in it."""
    size = _count(place.param, partials)
    for part in range(partials.parts):
        own = polynomials.scale(context.grid.of_part(part), size)
        rest = polynomials.subtract(place.offset, own)
        if rest.concrete:
            break
    else:
        shown = polynomials.text(place.offset)
        raise Unsupported(f"partial accumulators at {shown}, outside each part of the tile")
    at = data.numbers(rest.constant, context.threads)
    about = f"{place.param.name} is accessed outside the tile's part"
    wrong = (at < 0) | (at + width > size)
    context.check(state, "global bounds", wrong, about)
    about = f"{place.param.name} is accessed at no multiple of {width} elements"
    context.check(state, "alignment", at % width != 0, about)
    return part, np.clip(at, 0, size - width)
