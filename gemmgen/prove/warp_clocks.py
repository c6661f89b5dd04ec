"""The accesses of shared memory that each warp knows of: what is ordered by barriers and mbarriers.

An *agent* is a warp, or an mbarrier with the copies of TMA that it counts.  Each agent counts
epochs; an access has the epoch of its agent.  Warp ``w`` knows of agent ``a``'s accesses up to
epoch ``known[w, a]``: a barrier passes on what those know who arrive.  Two accesses of one element
conflict if one is a write, and the later one's warp does not know of the earlier one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from gemmgen.base.record import record
from gemmgen.ir.target import WARP
from gemmgen.numerics.operators import Bools, Ints
from gemmgen.prove.integers import Unsupported

NEVER = 1 << 30
"""The epoch of a read that goes on: no warp knows of it."""
NO_LANE, SEVERAL_LANES, MET = -1, -2, -3
NO_AGENT = -1


@record
class LastAccesses:
    """Of each element of an array the last reads by each warp and the last write: their epochs,
    their agents, and the lane, if the warp's lanes have not met since.  ``flight`` is the mbarrier
    that counts a copy to the element under way; ``unfenced`` are the warps after whose accesses
    no ``fence.proxy.async`` has been.  ``leaver`` is the thread whose copy of it to global memory
    is under way, and ``leaving`` how many groups that thread has committed since; ``reading`` is
    how many groups of wgmma each warp has committed since one that reads it, -1 if it waited.
    ``met`` has the bits of groups of warps: each warp of a group knows of all accesses by warps of
    the group, whatever its epochs say.  An access clears them."""

    read_epoch: Ints
    read_lane: Ints
    write_agent: Ints
    write_epoch: Ints
    write_lane: Ints
    flight: Ints
    leaver: Ints
    leaving: Ints
    reading: Ints
    met: Ints
    unfenced: Bools

    @property
    def _numbers(self) -> tuple[Ints, ...]:
        own = (self.read_epoch, self.read_lane, self.write_agent, self.write_epoch)
        also = (self.write_lane, self.flight, self.leaver, self.leaving)
        return (*own, *also, self.reading, self.met)

    def copy(self) -> LastAccesses:
        return LastAccesses(*(own.copy() for own in self._numbers), unfenced=self.unfenced.copy())

    def equals(self, other: LastAccesses) -> bool:
        pairs = zip(self._numbers, other._numbers, strict=True)
        alike = all(np.array_equal(one, two) for one, two in pairs)
        return alike and np.array_equal(self.unfenced, other.unfenced)


def new_trace(warps: int, count: int) -> LastAccesses:
    def full(value: int, *shape: int) -> Ints:
        return np.full(shape, value, np.int64)

    def of_warps(value: int, kind: type[np.signedinteger[Any]]) -> Ints:
        """Narrow numbers: there are as many as warps times elements, and states are kept."""
        return cast(Ints, np.full((warps, count), value, kind))

    return LastAccesses(
        of_warps(0, np.int32),
        of_warps(NO_LANE, np.int8),
        full(NO_AGENT, count),
        full(0, count),
        full(NO_LANE, count),
        full(NO_AGENT, count),
        full(NO_AGENT, count),
        full(0, count),
        of_warps(NO_AGENT, np.int16),
        full(0, count),
        np.zeros((warps, count), np.bool_),
    )


@dataclass
class Clocks:
    """``now`` is the epoch of each agent; ``sharing`` are the lanes of each warp that know what it
    knows.  In a cluster each agent ``a`` has a second number, ``timed + a``: a warp that knows of
    an epoch of it knows that it is over, but may not see the accesses in it.  ``groups`` has a bit
    of each warp, that of the warps which meet at named barriers of their own; 0 of others."""

    known: Ints
    now: Ints
    sharing: Bools
    timed: int = 0
    groups: Ints | None = None

    def copy(self) -> Clocks:
        own = self.known.copy(), self.now.copy(), self.sharing.copy()
        return Clocks(*own, self.timed, self.groups)

    def numbers_of(self, agents: Ints) -> Ints:
        """The numbers of some agents: both, in a cluster."""
        return np.concatenate([agents, agents + self.timed]) if self.timed else agents

    def equals(self, other: Clocks) -> bool:
        return (
            np.array_equal(self.known, other.known)
            and np.array_equal(self.now, other.now)
            and np.array_equal(self.sharing, other.sharing)
        )

    @property
    def warps(self) -> int:
        return self.known.shape[0]

    def check_sharing(self, threads: Ints) -> None:
        if not self.sharing[threads // WARP, threads % WARP].all():
            raise Unsupported("lanes of a warp that have waited for different phases")


def new_clocks(warps: int, barriers: int, timed: bool = False) -> Clocks:
    agents = (warps + barriers) * (2 if timed else 1)
    return Clocks(
        np.zeros((warps, agents), np.int64),
        np.ones(agents, np.int64),
        np.ones((warps, WARP), np.bool_),
        warps + barriers if timed else 0,
    )


# ---- accesses ----


def read(clocks: Clocks, trace: LastAccesses, at: Ints, threads: Ints) -> tuple[Bools, Bools]:
    """Notes that ``threads`` read the elements ``at``: where a copy to it is under way, and where a
    write is not known."""
    clocks.check_sharing(threads)
    flying = trace.flight[at] != NO_AGENT
    wrong = unknown_write(clocks, trace, at, threads)
    warp, lane = threads // WARP, threads % WARP
    old, epoch = trace.read_lane[warp, at], clocks.now[warp]
    fresh = trace.read_epoch[warp, at] <= 0
    trace.read_epoch[warp, at] = np.maximum(trace.read_epoch[warp, at], epoch)
    new = np.where(fresh | (old == MET) | (old == lane), lane, SEVERAL_LANES)
    trace.read_lane[warp, at] = lane
    together = trace.read_lane[warp, at] != lane
    trace.read_lane[warp, at] = new
    trace.read_lane[warp[together], at[together]] = SEVERAL_LANES
    trace.unfenced[warp, at] = True
    trace.met[at] = 0
    return flying, wrong


def write(
    clocks: Clocks, trace: LastAccesses, at: Ints, threads: Ints
) -> tuple[Bools, Bools, Bools]:
    """Notes that ``threads`` write the elements ``at``: where a copy to it is under way, and where
    a write, or a read, is not known."""
    clocks.check_sharing(threads)
    flying = trace.flight[at] != NO_AGENT
    wrong, late = unknown_write(clocks, trace, at, threads), unknown_read(
        clocks, trace, at, threads
    )
    trace.write_lane[at] = threads
    wrong |= trace.write_lane[at] != threads  # another thread in this statement
    warp = threads // WARP
    trace.write_agent[at], trace.write_epoch[at] = warp, clocks.now[warp]
    trace.write_lane[at], trace.unfenced[warp, at] = threads % WARP, True
    trace.met[at] = 0
    return flying, wrong, late


def unknown_write(clocks: Clocks, trace: LastAccesses, at: Ints, threads: Ints) -> Bools:
    warp, lane = threads // WARP, threads % WARP
    agent, own = trace.write_agent[at], trace.write_lane[at]
    other = trace.write_epoch[at] > clocks.known[warp, agent]
    alone = (own != MET) & (own != lane)
    if clocks.groups is not None:
        of_warp = (agent != NO_AGENT) & (agent < clocks.warps)
        shared = clocks.groups[warp] & clocks.groups[np.where(of_warp, agent, 0)]
        other &= ~(of_warp & ((trace.met[at] & shared) != 0))
    return (agent != NO_AGENT) & np.where(agent == warp, alone, other)


def unknown_read(clocks: Clocks, trace: LastAccesses, at: Ints, threads: Ints) -> Bools:
    """Where a read of the elements is not known to ``threads``."""
    warp, lane = threads // WARP, threads % WARP
    epochs = trace.read_epoch[:, at]
    own = np.arange(clocks.warps)[:, None] == warp
    apart = np.where(own, epochs == NEVER, epochs > clocks.known[warp, : clocks.warps].T)
    if clocks.groups is not None:
        shared = clocks.groups[:, None] & clocks.groups[warp]
        apart &= own | ((trace.met[at] & shared) == 0)
    within = trace.read_lane[warp, at]
    return apart.any(axis=0) | ((within != NO_LANE) & (within != MET) & (within != lane))


def note_met(clocks: Clocks, trace: LastAccesses, warps: Ints) -> None:
    """Sets the bit of a group's ``warps`` where each knows of all accesses by the group."""
    assert clocks.groups is not None
    among = clocks.known[np.ix_(warps, warps)]
    np.fill_diagonal(among, NEVER - 1)
    known = np.zeros(clocks.known.shape[1], np.int64)
    known[warps] = among.min(axis=0)
    lanes = np.isin(trace.read_lane[warps], (MET, NO_LANE))
    read = (trace.read_epoch[warps] <= known[warps][:, None]) & lanes
    agent = trace.write_agent
    written = (trace.write_epoch <= known[agent]) & (trace.write_lane == MET)
    every = read.all(axis=0) & (written | ~np.isin(agent, warps))
    trace.met[every] |= clocks.groups[warps[0]]


# ---- barriers ----


def meet(clocks: Clocks, traces: list[LastAccesses], warps: Ints) -> None:
    """All threads of some warps wait for each other."""
    numbers = clocks.numbers_of(warps)
    clocks.known[warps] = clocks.known[warps].max(axis=0)
    clocks.known[np.ix_(warps, numbers)] = clocks.now[numbers]
    clocks.now[numbers] += 1
    clocks.sharing[warps] = True
    for trace in traces:
        lanes_meet(trace, warps)


def lanes_meet(trace: LastAccesses, warps: Ints) -> None:
    """All lanes of each of some warps wait for each other."""
    read = trace.read_lane[warps]
    trace.read_lane[warps] = np.where(read != NO_LANE, MET, NO_LANE)
    trace.write_lane[np.isin(trace.write_agent, warps)] = MET


def arrive(clocks: Clocks, traces: list[LastAccesses], threads: Ints) -> Ints:
    """What the threads of one warp know that arrive at an mbarrier, their own accesses included."""
    clocks.check_sharing(threads)
    warp, lanes = int(threads[0]) // WARP, threads % WARP
    known = clocks.known[warp].copy()
    numbers = clocks.numbers_of(np.array([warp]))
    known[numbers] = clocks.now[numbers]
    clocks.now[numbers] += 1
    if lanes.size < WARP:  # accesses by other lanes are not passed on
        for trace in traces:
            own = trace.read_lane[warp]
            left = (own != NO_LANE) & (own != MET) & ~np.isin(own, lanes)
            busy = trace.read_epoch[warp] == NEVER
            trace.read_epoch[warp, left & ~busy] = clocks.now[warp]
            lane = trace.write_lane
            left = (trace.write_agent == warp) & (lane != MET) & ~np.isin(lane, lanes)
            trace.write_epoch[left] = clocks.now[warp]
    return known


def issue(clocks: Clocks, warp: int) -> Ints:
    """What is over, as far as a warp knows, when it issues a copy: the copy passes that on to the
    mbarrier that counts it, but no accesses."""
    known, first = clocks.known[warp].copy(), clocks.timed
    known[:first] = 0
    known[first + warp] = clocks.now[first + warp]
    clocks.now[first + warp] += 1
    return known


def learn(clocks: Clocks, threads: Ints, known: Ints) -> None:
    """The threads of one warp know what has been passed on to a barrier."""
    warp, lanes = int(threads[0]) // WARP, threads % WARP
    clocks.known[warp] = np.maximum(clocks.known[warp], known)
    if lanes.size < WARP:
        if not clocks.sharing[warp, lanes].all():
            raise Unsupported("lanes of a warp that have waited for different phases")
        clocks.sharing[warp] = np.isin(np.arange(WARP), lanes)


def of_warps(threads: Ints) -> list[Ints]:
    """Threads by their warps."""
    return [threads[threads // WARP == warp] for warp in np.unique(threads // WARP)]


# ---- equal states ----


def ranked(epochs: Ints, thresholds: Ints) -> Ints:
    """Epochs by the first of some sorted thresholds that is not before them."""
    if thresholds.size and thresholds[0] >= 0 and not epochs.any():
        return np.zeros(epochs.shape, np.int64)
    return np.where(epochs == NEVER, NEVER, np.searchsorted(thresholds, epochs))
