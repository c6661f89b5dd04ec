"""States of a walk in one form, so that equal ones are found: epochs by their order."""

from __future__ import annotations

import numpy as np

from gemmgen.numerics.operators import Ints
from gemmgen.prove.data import UnknownData
from gemmgen.prove.integers import Unsupported
from gemmgen.prove.mbarriers import NEVER as NOT_SO
from gemmgen.prove.mbarriers import BarrierStates
from gemmgen.prove.state import WalkState
from gemmgen.prove.warp_clocks import (
    MET,
    NEVER,
    NO_AGENT,
    NO_LANE,
    SEVERAL_LANES,
    Clocks,
    LastAccesses,
    ranked,
)

UNKNOWN = UnknownData("the phase of an mbarrier after a loop")


def normalize(state: WalkState) -> None:
    """Replaces the epochs of each agent by their order among those that some warp, or mbarrier,
    knows of; accesses that all warps know of are forgotten."""
    clocks, barriers = state.clocks, state.barriers
    if clocks is None or barriers is None or not barriers.numbers:
        return
    least = clocks.known.min(axis=0)
    for own in (barriers.collected, barriers.passed):
        np.maximum(own, least, out=own)
    for agent in range(clocks.now.size):
        _normalize_agent(state, clocks, barriers, agent)


def _normalize_agent(state: WalkState, clocks: Clocks, barriers: BarrierStates, agent: int) -> None:
    own = (clocks.known[:, agent], barriers.collected[:, agent], barriers.passed[:, agent])
    thresholds = np.unique(np.concatenate(own))
    for each in own:
        each[:] = ranked(each, thresholds)
    clocks.now[agent] = thresholds.size
    if agent >= clocks.timed:
        _normalize_phases(clocks, barriers, agent - clocks.timed, thresholds)
    if clocks.timed and agent >= clocks.timed:
        return
    for trace in state.traces:
        if agent < clocks.warps:
            read, lane = trace.read_epoch[agent], trace.read_lane[agent]
            if read.any():
                read[:] = ranked(read, thresholds)
            lane[(read == 0) & (lane == MET)] = NO_LANE
        written = trace.write_agent == agent
        if not written.any():
            continue
        trace.write_epoch[written] = ranked(trace.write_epoch[written], thresholds)
        alike = (trace.write_lane == MET) if agent < clocks.warps else True
        known = written & (trace.write_epoch == 0) & alike
        trace.write_agent[known], trace.write_lane[known] = NO_AGENT, NO_LANE
    if agent < clocks.warps:
        started = barriers.starter == agent
        barriers.begun[started] = ranked(barriers.begun[started], thresholds)


def _normalize_phases(
    clocks: Clocks, barriers: BarrierStates, agent: int, thresholds: Ints
) -> None:
    """The same for the epochs of an agent in which a warp has waited, or a phase has ended."""
    if agent < clocks.warps:
        barriers.waited[:, agent] = ranked(barriers.waited[:, agent], thresholds)
    else:
        at = agent - clocks.warps
        for name in ("ended", "before"):
            barriers.numbers[name][at] = ranked(barriers.numbers[name][at], thresholds)


def same_order(left: WalkState, right: WalkState) -> bool:
    """Whether two states in that form agree in who knows of what, and in all phases."""
    if left.clocks is None or right.clocks is None:
        return left.clocks is right.clocks
    one, two = left.barriers, right.barriers
    assert one is not None and two is not None
    return (
        left.clocks.equals(right.clocks)
        and left.multiplying == right.multiplying
        and one.numbers.keys() == two.numbers.keys()
        and all(np.array_equal(own, two.numbers[name]) for name, own in one.numbers.items())
        and all(map(lambda x, y: x.equals(y), left.traces, right.traces))
    )


def joined_order(states: list[WalkState]) -> None:
    """Leaves in the first of some states of one place what is so in all of them: of the order that
    no warp knows of any access, and of mbarriers nothing."""
    first = states[0]
    if first.clocks is None or first.barriers is None:
        return
    if all(same_order(first, other) for other in states[1:]):
        return
    clocks = first.clocks
    for other in states[1:]:
        assert other.clocks is not None
        np.maximum(clocks.now, other.clocks.now, out=clocks.now)
        clocks.sharing &= other.clocks.sharing
        assert other.barriers is not None
        for name in ("open", "remote"):
            own, theirs = first.barriers.numbers[name], other.barriers.numbers[name]
            np.maximum(own, theirs, out=own)
    clocks.known[:] = clocks.now - 1
    for number, trace in enumerate(first.traces):
        others = [other.traces[number] for other in states[1:]]
        _join_traces(clocks, trace, others)
    first.barriers.guards = [UNKNOWN for _ in first.barriers.guards]


def _join_traces(clocks: Clocks, trace: LastAccesses, others: list[LastAccesses]) -> None:
    busy, accessed = trace.read_epoch == NEVER, trace.read_lane != NO_LANE
    for other in others:
        busy |= other.read_epoch == NEVER
        accessed |= other.read_lane != NO_LANE
        apart = trace.write_agent != other.write_agent
        new = trace.write_agent == NO_AGENT
        if (apart & ~new & (other.write_agent != NO_AGENT)).any():
            raise Unsupported("elements that one warp or another has written last")
        trace.write_agent[new] = other.write_agent[new]
        trace.write_lane[apart & (trace.write_agent != NO_AGENT)] = SEVERAL_LANES
        trace.write_lane[trace.write_lane != other.write_lane] = SEVERAL_LANES
        trace.flight[trace.flight == NO_AGENT] = other.flight[trace.flight == NO_AGENT]
        trace.unfenced[other.unfenced] = True
        np.bitwise_and(trace.met, other.met, out=trace.met)
        later = (other.reading != NO_AGENT) & (
            (trace.reading == NO_AGENT) | (other.reading < trace.reading)
        )
        trace.reading[later] = other.reading[later]
        new = trace.leaver == NO_AGENT
        if (~new & (other.leaver != NO_AGENT) & (trace.leaver != other.leaver)).any():
            raise Unsupported("elements that one thread or another stores")
        trace.leaver[new], trace.leaving[new] = other.leaver[new], other.leaving[new]
        np.minimum(trace.leaving, other.leaving, out=trace.leaving)
    trace.read_lane[accessed] = SEVERAL_LANES
    trace.read_epoch[:] = np.where(accessed, clocks.now[: clocks.warps, None], 0)
    trace.read_epoch[busy] = NEVER
    written = trace.write_agent != NO_AGENT
    trace.write_epoch[written] = clocks.now[trace.write_agent[written]]


def end_unissued(state: WalkState) -> None:
    """Copies that are not issued in the calls of this state are not in flight."""
    barriers = state.barriers
    if barriers is None:
        return
    for number, guard in enumerate(barriers.guards):
        if guard == NOT_SO:
            barriers.open[number] = 0
            for trace in state.traces:
                trace.flight[trace.flight == number] = NO_AGENT
