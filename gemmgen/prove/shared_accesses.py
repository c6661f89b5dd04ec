"""Accesses of shared memory: which elements they are, whether they conflict, and what they hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from gemmgen.ir.dtypes import BYTES
from gemmgen.ir.lowered import SharedArray
from gemmgen.numerics.operators import Ints
from gemmgen.prove import data, picked_values, polynomials, shared_state
from gemmgen.prove.data import Data, Kept, UnknownData
from gemmgen.prove.integers import Unsupported
from gemmgen.prove.settled_values import settled
from gemmgen.prove.state import SharedPlace, WalkState, Write
from gemmgen.prove.walk_context import WalkContext


def load(context: WalkContext, state: WalkState, place: SharedPlace, width: int) -> list[Data]:
    """``width`` neighbors from ``place`` on."""
    check_alignment(context, state, place, width)
    return [
        load_cells(context, state, place.name, at) for at in neighbors(context, state, place, width)
    ]


def save(
    context: WalkContext,
    state: WalkState,
    place: SharedPlace,
    values: Sequence[Data],
    asynchronous: bool = False,
) -> None:
    check_alignment(context, state, place, len(values))
    all_of = neighbors(context, state, place, len(values))
    for at, value in zip(all_of, values, strict=True):
        save_cells(context, state, place.name, at, value, asynchronous)


def array_of(context: WalkContext, name: str) -> SharedArray:
    return next(one for one in context.kernel.shared if one.name == name)


def neighbors(
    context: WalkContext, state: WalkState, place: SharedPlace, width: int
) -> list[Ints | None]:
    return [cells_of(context, state, place, e) for e in range(width)]


def cells_of(context: WalkContext, state: WalkState, place: SharedPlace, e: int = 0) -> Ints | None:
    """The flat index of each thread's element, ``e`` after ``place``; None where it is outside."""
    sizes = array_of(context, place.name).sizes
    flat, inside = np.zeros(context.threads, np.int64), True
    for i, (own, size) in enumerate(zip(_indices(context, place), sizes, strict=True)):
        if i == len(sizes) - 1:
            own = own + e
        wrong = np.broadcast_to((own < 0) | (own >= size), context.threads)
        index = own if own.ndim == 0 else own[data.first_thread(wrong)]
        about = f"index {i} of {place.name} is {index}, of {size}"
        inside &= context.check(state, "shared bounds", wrong, about)
        flat = flat * size + own
    return flat if inside else None


def _indices(context: WalkContext, place: SharedPlace) -> list[Ints]:
    """The indices of a place, for each thread."""
    if len(place.first) != len(array_of(context, place.name).sizes):
        raise Unsupported(f"{len(place.first)} indices of {place.name}")
    for form in place.first:
        if not form.concrete:
            shown = polynomials.text(form)
            raise Unsupported(f"the index {shown} of {place.name} depends on sizes")
    return [np.asarray(form.constant) for form in place.first]


def own_copy(context: WalkContext, name: str, at: Ints) -> Ints:
    """The numbers of each thread's element among those of all blocks of a cluster."""
    if context.ranks == 1:
        return at
    return at + context.rank * int(np.prod(array_of(context, name).sizes))


def copy_of(context: WalkContext, name: str, at: Ints, rank: int) -> Ints:
    """The numbers of elements of one block among those of all blocks of a cluster."""
    return at + rank * int(np.prod(array_of(context, name).sizes))


def flat_inside(context: WalkContext, state: WalkState, name: str, at: Ints) -> Ints | None:
    """``at``, if all of it is inside the array; the rest of a row that begins inside may not be."""
    count = int(np.prod(array_of(context, name).sizes))
    wrong = (at < 0) | (at >= count)
    about = f"a row of a matrix is outside {name}"
    return at if context.check(state, "shared bounds", wrong, about) else None


def check_alignment(context: WalkContext, state: WalkState, place: SharedPlace, width: int) -> None:
    """That a vector of ``width`` elements begins at a multiple of its bytes."""
    if width == 1:
        return
    flat = np.zeros(context.threads, np.int64)
    sizes = array_of(context, place.name).sizes
    for own, size in zip(_indices(context, place), sizes, strict=True):
        flat = flat * size + own
    check_aligned(context, state, place.name, flat, width)


def check_aligned(
    context: WalkContext, state: WalkState, name: str, flat: Ints, width: int
) -> None:
    """That each thread's element is at a multiple of ``width`` elements in memory."""
    array = array_of(context, name)
    about = f"{name} is accessed at no multiple of {width} elements"
    context.check(state, "alignment", cast("shared_state.Bools", flat % width != 0), about)
    short = array.aligned % (width * BYTES[array.dtype]) != 0
    context.check(state, "alignment", short, f"{name} is aligned to {array.aligned} bytes")


def load_cells(context: WalkContext, state: WalkState, name: str, at: Ints | None) -> Data:
    """What each thread reads at its element ``at``; None: outside the array."""
    if at is None:
        return UnknownData("an element outside its array", certain=True)
    at = own_copy(context, name, at)
    _note_access(context, state, name, at, "read")
    if state.pending and any(one.name == name for one in state.pending):
        raise Unsupported(f"a read of {name} under the condition of a store")
    return shared_state.content(state.cells[name], context.events, at, state.mask)


def save_cells(
    context: WalkContext,
    state: WalkState,
    name: str,
    at: Ints | None,
    value: Data,
    asynchronous: bool = False,
) -> None:
    """Each thread writes its element ``at``; None: outside the array."""
    if at is None:
        return
    at = own_copy(context, name, at)
    _note_access(context, state, name, at, "write", asynchronous)
    write = Write(name, at, value, state.mask, context.where)
    if state.pending is None:
        finish(context, state, write)
    else:
        state.pending.append(write)


def _note_access(
    context: WalkContext,
    state: WalkState,
    name: str,
    at: Ints,
    kind: str,
    asynchronous: bool = False,
) -> None:
    """One access of each thread that is here, for races."""
    cells, threads = state.cells[name], context.active(state)
    own = at if state.mask is None else at[state.mask]
    statement = context.statement()
    if state.clocks is not None:
        if asynchronous:
            raise Unsupported("cp.async beside mbarriers")
        conflict = shared_state.traced(state.clocks, cells, own, threads, statement, kind)
    elif kind == "read":
        conflict = shared_state.read(cells, own, threads, statement)
    else:
        conflict = shared_state.write(cells, own, threads, statement, asynchronous)
    context.ledger.count("races")
    if conflict is not None:
        context.violated(state, "races", described(context, name, conflict), conflict.thread)


def described(context: WalkContext, name: str, conflict: shared_state.Conflict) -> str:
    sizes = array_of(context, name).sizes
    rank, cell = divmod(conflict.cell, int(np.prod(sizes)))
    index = "".join(f"[{i}]" for i in np.unravel_index(cell, sizes))
    if context.ranks > 1:
        index += f" of block {rank}"
    other = "another thread" if conflict.other < 0 else context.thread_text(conflict.other)
    first = context.statements[conflict.first_at].statement if conflict.first_at >= 0 else ""
    where = f" in `{first}`" if first else ""
    own = context.thread_text(conflict.thread)
    return f"{name}{index}: {own} {conflict.what}; the other is {other}{where}"


def finish(context: WalkContext, state: WalkState, write: Write) -> None:
    """A store that all threads of its mask do, wherever the state's path holds."""
    cells = state.cells[write.name]
    value = write.value
    if any(isinstance(each, Kept) for each in picked_values.inside(value)):
        old = shared_state.content(cells, context.events, write.at, write.mask)
        value = kept(value, old)
    value = settled(context, state, value)
    threads = context.every if write.mask is None else context.every[write.mask]
    shared_state.store(cells, context.events.add(value), write.at[threads], threads)


def kept(value: Data, old: Data) -> Data:
    """``value`` with ``old`` where it is kept."""
    match value:
        case Kept():
            return old
        case data.Pick(condition, yes, no):
            return data.pick(condition, kept(yes, old), kept(no, old))
        case _:
            return value
