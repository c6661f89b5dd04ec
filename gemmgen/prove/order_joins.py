"""What is known of the order of accesses in two states of one place in the code.

Who knows of an access is a set of warps and mbarriers, the *knowers*.  Of one agent's accesses a
later one is known to fewer: epochs number these sets in decreasing order.  In both states an access
is known to the intersection of its two sets; where these do not decrease, fewer know of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from gemmgen.numerics.operators import Bools, Ints
from gemmgen.prove import equal_orders
from gemmgen.prove.integers import Unsupported
from gemmgen.prove.mbarriers import BarrierStates
from gemmgen.prove.state import WalkState
from gemmgen.prove.warp_clocks import (
    NEVER,
    NO_AGENT,
    NO_LANE,
    SEVERAL_LANES,
    LastAccesses,
)

CONCRETE = ("count", "pending", "bytes", "parity", "fenced", "starter")
"""What must be equal in both states of mbarriers."""
FLAGS = ("open", "remote", "loose", "counts")
"""What is so of an mbarrier if it is so in one of them: each lets fewer facts follow."""


def is_joinable(known: WalkState, other: WalkState) -> bool:
    """Whether the mbarriers are in the same phases, and the same copies are in flight."""
    one, two = known.barriers, other.barriers
    assert one is not None and two is not None
    return (
        known.multiplying == other.multiplying
        and all(np.array_equal(one.numbers[name], two.numbers[name]) for name in CONCRETE)
        and all(
            np.array_equal(own.flight, their.flight)
            for own, their in zip(known.traces, other.traces, strict=True)
        )
    )


def concrete(state: WalkState) -> object:
    """What is equal for joinable states, and can be hashed."""
    barriers = state.barriers
    assert barriers is not None
    return (
        tuple(sorted(state.multiplying.items())),
        *(barriers.numbers[name].tobytes() for name in CONCRETE),
        *(trace.flight.tobytes() for trace in state.traces if (trace.flight != NO_AGENT).any()),
    )


def with_order(state: WalkState, other: WalkState) -> WalkState:
    """``state`` with the order of ``other``."""
    found = other.copy()
    for name, cells in state.cells.items():
        trace = found.cells[name].trace
        found.cells[name] = replace(cells.copy(), trace=trace)
    found.slots, found.registers = dict(state.slots), dict(state.registers)
    return found


def forget_since(state: WalkState, before: WalkState) -> None:
    """Warps know only what they knew ``before``: so that trips before and after a named barrier
    leave the same order.  Who knows less conflicts with more."""
    assert state.clocks is not None and before.clocks is not None
    np.minimum(state.clocks.known, before.clocks.known, out=state.clocks.known)


def join(known: WalkState, other: WalkState) -> bool:
    """Leaves in ``known`` what is known in both states, which ``equal_orders`` has normalized;
    whether that changed anything.  Raises ``Unsupported``."""
    if not is_joinable(known, other):
        raise Unsupported("trips that leave different phases of mbarriers")
    clocks, barriers = known.clocks, known.barriers
    assert clocks is not None and barriers is not None
    assert other.clocks is not None and other.barriers is not None
    before = known.copy()
    for own, their in zip(known.traces, other.traces, strict=True):
        _join_writers(own, their)
    for agent in range(clocks.now.size):
        _join_agent(known, before, other, agent)
    for own, their in zip(known.traces, other.traces, strict=True):
        _join_accesses(own, their)
    clocks.sharing &= other.clocks.sharing
    for name in FLAGS:
        own = barriers.numbers[name]
        np.maximum(own, other.barriers.numbers[name], out=own)
    equal_orders.normalize(known)
    return not equal_orders.same_order(before, known)


# ---- epochs ----


@dataclass
class _Chain:
    """The sets of knowers of one agent's accesses, decreasing; ``one`` and ``two`` are up to which
    epoch each knower knows in the two states.  The first set is that of all knowers."""

    one: Ints
    two: Ints
    sets: list[int] = field(default_factory=list[int])
    numbers: dict[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])

    def order(self, pairs: set[tuple[int, int]]) -> None:
        """Numbers the accesses that have these epochs in the two states."""
        own = {pair: self._knowers(*pair) for pair in pairs}
        self.sets = [self._knowers(0, 0)]
        for pair in sorted(own, key=lambda pair: (-own[pair].bit_count(), own[pair])):
            both = self.sets[-1] & own[pair]
            if both != self.sets[-1]:
                self.sets.append(both)
            self.numbers[pair] = len(self.sets) - 1

    def _knowers(self, first: int, second: int) -> int:
        knows = (self.one >= first) & (self.two >= second)
        return sum(1 << int(i) for i in np.flatnonzero(knows))

    @property
    def now(self) -> int:
        """The epoch that no knower knows of."""
        return len(self.sets) - int(self.sets[-1] == 0)

    def thresholds(self) -> Ints:
        """Up to which epoch each knower knows in both states."""
        found = np.zeros(self.one.size, np.int64)
        for number, own in enumerate(self.sets):
            for i in range(found.size):
                if own >> i & 1:
                    found[i] = number
        return found


Events = tuple[Ints, Ints, Callable[[Ints], None]]
"""Accesses of one agent by their epochs in two states, and what sets the new ones."""


def _join_agent(known: WalkState, before: WalkState, other: WalkState, agent: int) -> None:
    chain = _Chain(_knowers(before, agent), _knowers(other, agent))
    events = list(_events(known, before, other, agent))
    pairs: set[tuple[int, int]] = set()
    for own, their, _ in events:
        pairs |= _pairs(own, their)
    chain.order(pairs)
    for own, their, change in events:
        new = np.full(own.shape, NEVER, np.int64)
        for (x, y), number in chain.numbers.items():
            new[(own == x) & (their == y)] = number
        change(new)
    assert known.clocks is not None and known.barriers is not None
    warps, barriers = known.clocks.warps, known.barriers.capacity
    found = chain.thresholds()
    known.clocks.known[:, agent] = found[:warps]
    known.barriers.collected[:, agent] = found[warps : warps + barriers]
    known.barriers.passed[:, agent] = found[warps + barriers :]
    known.clocks.now[agent] = chain.now


def _pairs(one: Ints, two: Ints) -> set[tuple[int, int]]:
    """The pairs of epochs that accesses have in two states; these are small numbers."""
    if not (one.any() or two.any()):
        return {(0, 0)} if one.size else set()
    counted = (one != NEVER) & (two != NEVER)
    own, their = one[counted].astype(np.int64), two[counted]
    if not own.size:
        return set()
    shift = int(their.max()) + 1
    codes = np.flatnonzero(np.bincount(own * shift + their))
    return {divmod(int(code), shift) for code in codes}


def _knowers(state: WalkState, agent: int) -> Ints:
    """Up to which epoch of an agent each warp knows, and each mbarrier passes on."""
    clocks, barriers = state.clocks, state.barriers
    assert clocks is not None and barriers is not None
    own = (clocks.known[:, agent], barriers.collected[:, agent], barriers.passed[:, agent])
    return np.concatenate(own)


def _events(known: WalkState, before: WalkState, other: WalkState, agent: int) -> Iterator[Events]:
    """All that has an epoch of ``agent``."""
    one, two, new = before.barriers, other.barriers, known.barriers
    assert one is not None and two is not None and new is not None
    if agent >= one.timed:
        yield from _phases(one, two, new, agent - one.timed)
    if one.timed and agent >= one.timed:
        return
    warps = one.warps
    for trace, own, their in zip(known.traces, before.traces, other.traces, strict=True):
        if agent < warps:
            read = own.read_epoch[agent], their.read_epoch[agent]
            yield *read, _setter(trace.read_epoch, (agent,))
        where = np.flatnonzero(trace.write_agent == agent)
        if where.size:
            yield _written(own, agent, where), _written(their, agent, where), _setter(
                trace.write_epoch, (where,)
            )
    started = np.flatnonzero(one.starter == agent)
    if agent < warps and started.size:
        yield one.begun[started], two.begun[started], _setter(new.begun, (started,))


def _phases(
    one: BarrierStates, two: BarrierStates, new: BarrierStates, agent: int
) -> Iterator[Events]:
    """The waits of a warp, or the ends of an mbarrier's phases."""
    warps = one.warps
    if agent < warps:
        yield one.waited[:, agent], two.waited[:, agent], _setter(new.waited, (slice(None), agent))
        return
    at = slice(agent - warps, agent - warps + 1)
    yield one.ended[at], two.ended[at], _setter(new.ended, (at,))
    yield one.before[at], two.before[at], _setter(new.before, (at,))


def _setter(array: Ints, where: tuple[object, ...]) -> Callable[[Ints], None]:
    def change(new: Ints) -> None:
        array[where] = new  # type: ignore[index]  # an index of numpy

    return change


def _written(trace: LastAccesses, agent: int, where: Ints) -> Ints:
    """The epochs of writes by ``agent``; all know of none."""
    return np.where(trace.write_agent[where] == agent, trace.write_epoch[where], 0)


# ---- what else is known of an element ----


def _join_writers(trace: LastAccesses, other: LastAccesses) -> None:
    new = trace.write_agent == NO_AGENT
    apart = ~new & (other.write_agent != NO_AGENT) & (trace.write_agent != other.write_agent)
    if apart.any():
        raise Unsupported("elements that one warp or another has written last")
    trace.write_agent[new] = other.write_agent[new]
    trace.write_lane[:] = _lanes(trace.write_lane, other.write_lane)


def _join_accesses(trace: LastAccesses, other: LastAccesses) -> None:
    trace.read_lane[:] = _lanes(trace.read_lane, other.read_lane)
    np.bitwise_and(trace.met, other.met, out=trace.met)
    np.logical_or(trace.unfenced, other.unfenced, out=trace.unfenced)
    trace.reading[:] = _fewer(trace.reading, other.reading, other.reading != NO_AGENT)
    apart = (trace.leaver != NO_AGENT) & (other.leaver != NO_AGENT) & (trace.leaver != other.leaver)
    if apart.any():
        raise Unsupported("elements that one thread or another stores")
    leaves = other.leaver != NO_AGENT
    of_none = np.where(trace.leaver == NO_AGENT, NO_AGENT, trace.leaving)
    trace.leaving[:] = np.maximum(_fewer(of_none, other.leaving, leaves), 0)
    trace.leaver[leaves] = other.leaver[leaves]


def _lanes(own: Ints, other: Ints) -> Ints:
    """The lane that accessed an element in one or both states."""
    both = np.where(own == other, own, SEVERAL_LANES)
    return np.where(own == NO_LANE, other, np.where(other == NO_LANE, own, both))


def _fewer(own: Ints, other: Ints, there: Bools) -> Ints:
    """How many groups have been committed since, at least."""
    return np.where(there & ((own == NO_AGENT) | (other < own)), other, own)
