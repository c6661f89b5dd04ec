"""Shared memory of one block: what each element holds, and who accessed it since the last barrier.

All of it is numbers for each element, since a block's threads and arrays have fixed sizes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import cast

import numpy as np

from gemmgen.base.record import record
from gemmgen.ir.target import WARP
from gemmgen.numerics.operators import Bools, Ints
from gemmgen.prove import warp_clocks
from gemmgen.prove.data import Data, UnknownData, gathered, skeleton, taken
from gemmgen.prove.warp_clocks import Clocks, LastAccesses, new_trace

NONE, SEVERAL = -1, -2
LANES, MET = -3, -4
"""Codes of several threads of one warp, which have or have not met since: ``LANES - 2 * warp``."""
NEVER = UnknownData("an element that no thread has stored", certain=True)
MIXED = UnknownData("elements that different statements stored")


def by_events(one: Ints, two: Ints) -> Iterator[tuple[int, int, Ints]]:
    """Each pair of numbers that elements have in two states, with the elements that have it."""
    shift = int(two.max(initial=0)) + 2  # NONE is -1
    codes, which = np.unique(one * shift + two + 1, return_inverse=True)
    order = np.argsort(which, kind="stable")
    ends = np.cumsum(np.bincount(which, minlength=codes.size))
    for code, where in zip(codes, np.split(order, ends[:-1]), strict=True):
        first, second = divmod(int(code), shift)
        yield first, second - 1, where


@record
class Conflict:
    """Two threads that access an element, the second one now; ``first_at`` is the number of the
    first one's statement, -1 if it is not known."""

    cell: int
    thread: int
    other: int
    first_at: int
    what: str


@record
class Cells:
    """An array's elements.  ``event`` is the store whose value each holds and ``place`` the thread
    of that store; ``reader`` and ``writer`` are the threads that accessed it since the last
    barrier, a thread's number or a code; ``age`` is, of an asynchronous copy in flight, the number
    of commits since.
    """

    event: Ints
    place: Ints
    reader: Ints
    writer: Ints
    reader_at: Ints
    writer_at: Ints
    age: Ints
    owner: Ints
    trace: LastAccesses | None = None

    def copy(self) -> Cells:
        return Cells(
            self.event.copy(),
            self.place.copy(),
            self.reader.copy(),
            self.writer.copy(),
            self.reader_at.copy(),
            self.writer_at.copy(),
            self.age.copy(),
            self.owner.copy(),
            None if self.trace is None else self.trace.copy(),
        )


def new_cells(count: int, warps: int = 0) -> Cells:
    """Elements that no thread has accessed; ``warps``, if who knows of accesses is traced."""
    numbers = (np.full(count, NONE, np.int64) for _ in range(8))
    return Cells(*numbers, trace=new_trace(warps, count) if warps else None)


@record
class Events:
    """The values of all stores, by number; shared by all states of a walk."""

    values: list[Data] = field(default_factory=list[Data])

    def add(self, value: Data) -> int:
        self.values.append(value)
        return len(self.values) - 1


def content(cells: Cells, events: Events, at: Ints, mask: Bools | None) -> Data:
    """What each thread reads at its element."""
    if mask is not None:
        at = np.where(mask, at, at[int(np.argmax(mask))])
    event, place = cells.event[at], cells.place[at]
    least = int(event.min())
    if least == NONE:
        return NEVER
    if least == event.max():
        return taken(events.values[least], place)
    numbers = np.unique(event)
    parts: list[tuple[Bools, Data]] = []
    for number in numbers:
        where = cast(Bools, event == number)
        parts.append(
            (where, taken(events.values[int(number)], np.where(where, place, place[where][0])))
        )
    found = gathered(parts)
    return MIXED if found is None else found


def alike(
    cells: Cells, events: Events, at: Ints, mask: Bools | None
) -> list[Bools] | list[Bools | None]:
    """The threads whose elements have values of one form, for each form."""
    event = cells.event[at]
    active = np.ones(at.size, np.bool_) if mask is None else mask
    found: dict[object, Bools] = {}
    for number in np.unique(event[active]):
        own = cast(Bools, active & (event == number))
        form = None if number == NONE else skeleton(events.values[int(number)])
        found[form] = found[form] | own if form in found else own
    return [mask] if len(found) <= 1 else [*found.values()]


def store(cells: Cells, event: int, at: Ints, threads: Ints) -> None:
    cells.event[at] = event
    cells.place[at] = threads


def read(cells: Cells, at: Ints, threads: Ints, statement: int) -> Conflict | None:
    """Notes that ``threads`` read the elements ``at``; the first conflict."""
    flying = cells.age[at] != NONE
    if flying.any():
        return _conflict(cells, at, threads, flying, "reads it while a copy is in flight to it")
    wrong = _apart(cells.writer[at], threads)
    found = (
        _conflict(cells, at, threads, wrong, "reads what the other writes") if wrong.any() else None
    )
    _note(cells.reader, cells.reader_at, at, threads, statement)
    return found


def write(
    cells: Cells, at: Ints, threads: Ints, statement: int, asynchronous: bool = False
) -> Conflict | None:
    """Notes that ``threads`` write the elements ``at``, or begin to copy to them."""
    flying = cells.age[at] != NONE
    writer = cells.writer[at]
    wrong, late = _apart(writer, threads), _apart(cells.reader[at], threads)
    found: Conflict | None = None
    if flying.any():
        found = _conflict(cells, at, threads, flying, "writes it while a copy is in flight to it")
    elif wrong.any():
        found = _conflict(cells, at, threads, wrong, "writes what the other writes")
    elif late.any():
        found = _conflict(cells, at, threads, late, "writes what the other reads", reads=True)
    cells.writer[at] = threads
    twice = cells.writer[at] != threads
    if found is None and twice.any():
        found = _conflict(cells, at, threads, twice, "writes it in the same statement")
    cells.writer[at] = writer
    if asynchronous:
        cells.age[at], cells.owner[at] = 0, threads
    else:
        _note(cells.writer, cells.writer_at, at, threads, statement)
    return found


def traced(
    clocks: Clocks, cells: Cells, at: Ints, threads: Ints, statement: int, kind: str
) -> Conflict | None:
    """The same where the accesses that each warp knows of are traced."""
    trace = cells.trace
    assert trace is not None
    if kind == "read":
        flying, wrong = warp_clocks.read(clocks, trace, at, threads)
        late = np.zeros(at.size, np.bool_)
    else:
        flying, wrong, late = warp_clocks.write(clocks, trace, at, threads)
    found: Conflict | None = None
    for where, what, by in (
        (flying, f"{kind}s it while a copy is in flight to it", cells.writer_at),
        (wrong, f"{kind}s what the other writes", cells.writer_at),
        (late, f"{kind}s what the other reads", cells.reader_at),
    ):
        if found is None and where.any():
            i = int(np.argmax(where))
            found = Conflict(int(at[i]), int(threads[i]), NONE, int(by[at[i]]), what)
    (cells.reader_at if kind == "read" else cells.writer_at)[at] = statement
    return found


def _apart(owner: Ints, threads: Ints) -> Bools:
    """Which of ``threads`` do not know of the accesses by these owners."""
    return (owner != NONE) & (owner != threads) & (owner != MET - 2 * (threads // WARP))


def _both(owner: Ints, other: Ints) -> Ints:
    """The owner of elements that both accessed: who knows of both accesses."""
    warp, same = _warp_of(owner), _warp_of(owner) == _warp_of(other)
    met, also = owner == MET - 2 * warp, other == MET - 2 * warp
    of_warp = np.where(met, other, np.where(also, owner, LANES - 2 * warp))
    joined = np.where(owner == other, owner, np.where(same & (warp >= 0), of_warp, SEVERAL))
    return np.where(owner == NONE, other, np.where(other == NONE, owner, joined))


def _warp_of(owner: Ints) -> Ints:
    """The warp of a thread, or of a code; -1 of none and of several."""
    return np.where(owner >= 0, owner // WARP, np.where(owner <= LANES, (LANES - owner) // 2, -1))


def _note(who: Ints, by: Ints, at: Ints, threads: Ints, statement: int) -> None:
    warps = threads // WARP
    new = _both(who[at], threads)
    who[at] = threads
    together = who[at] != threads  # with another thread, which accesses it in this statement
    who[at] = warps
    across = who[at] != warps
    who[at] = new
    who[at[together]] = _both(new[together], LANES - 2 * warps[together])
    who[at[across]] = SEVERAL
    by[at] = statement


def _conflict(
    cells: Cells, at: Ints, threads: Ints, wrong: Bools, what: str, reads: bool = False
) -> Conflict:
    i = int(np.argmax(wrong))
    cell = int(at[i])
    who, by = (cells.reader, cells.reader_at) if reads else (cells.writer, cells.writer_at)
    if cells.age[cell] != NONE:
        return Conflict(cell, int(threads[i]), int(cells.owner[cell]), NONE, what)
    return Conflict(cell, int(threads[i]), int(who[cell]), int(by[cell]), what)


def meet(cells: Cells) -> None:
    """All threads wait at a barrier."""
    for numbers in (cells.reader, cells.writer, cells.reader_at, cells.writer_at):
        numbers.fill(NONE)


def meet_in_warps(cells: Cells, warps: Ints) -> None:
    """All lanes of each of these warps wait for each other."""
    for who in (cells.reader, cells.writer):
        warp = _warp_of(who)
        here = (warp >= 0) & np.isin(warp, warps)
        who[here] = MET - 2 * warp[here]


def commit(cells: Cells) -> None:
    cells.age[cells.age != NONE] += 1


def wait(cells: Cells, pending: int, statement: int) -> None:
    """Copies in all but the last ``pending`` groups have landed, for their own threads."""
    landed = np.flatnonzero(cells.age > pending)
    if landed.size:
        _note(cells.writer, cells.writer_at, landed, cells.owner[landed], statement)
        cells.age[landed] = NONE


def in_flight(cells: Cells) -> bool:
    """Whether a copy to, or of, an element is under way."""
    trace = cells.trace
    flying = trace is not None and (
        ((trace.flight != NONE) | (trace.leaver != NONE)).any() or (trace.reading != NONE).any()
    )
    return bool(flying or (cells.age != NONE).any())


def join(cells: Cells, other: Cells) -> bool:
    """Adds the other's accesses and copies in flight; whether that changed anything."""
    changed = False
    for own, theirs in ((cells.reader, other.reader), (cells.writer, other.writer)):
        new = _both(own, theirs)
        changed |= not np.array_equal(new, own)
        own[:] = new
    for own, theirs in ((cells.reader_at, other.reader_at), (cells.writer_at, other.writer_at)):
        own[:] = np.where(own == NONE, theirs, own)
    flying = (other.age != NONE) & ((cells.age == NONE) | (other.age < cells.age))
    moved = (other.age != NONE) & (cells.age != NONE) & (cells.owner != other.owner)
    changed |= bool(flying.any() or moved.any())
    cells.age[:] = np.where(flying, other.age, cells.age)
    cells.owner[:] = np.where(moved, SEVERAL, np.where(flying, other.owner, cells.owner))
    return changed
