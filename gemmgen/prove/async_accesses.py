"""Accesses of shared memory that go on by themselves: copies and stores by TMA, operands of wgmma.

What ``warp_clocks`` traces of them: an access that goes on is known to no warp until who issued it
has waited.
"""

from __future__ import annotations

import numpy as np

from gemmgen.ir.target import WARP
from gemmgen.numerics.operators import Bools, Ints
from gemmgen.prove.integers import Unsupported
from gemmgen.prove.warp_clocks import (
    MET,
    NEVER,
    NO_AGENT,
    Clocks,
    LastAccesses,
    unknown_read,
    unknown_write,
)


def fence(trace: LastAccesses, warps: Ints) -> None:
    """TMA sees what the lanes of these warps have done."""
    trace.unfenced[warps] = False


def begin_copy(
    clocks: Clocks, trace: LastAccesses, at: Ints, thread: int, barrier: int
) -> tuple[Bools, Bools, Bools, Bools]:
    """Notes that TMA begins to copy to the elements ``at``, for ``thread``: what ``write`` says,
    and where TMA may not see an access."""
    threads = np.full(at.size, thread)
    clocks.check_sharing(threads[:1])
    flying = trace.flight[at] != NO_AGENT
    wrong = unknown_write(clocks, trace, at, threads)
    late = unknown_read(clocks, trace, at, threads)
    unseen = np.asarray(trace.unfenced[:, at].any(axis=0))
    trace.flight[at] = barrier
    return flying, wrong, late, unseen


def begin_store(
    clocks: Clocks, trace: LastAccesses, at: Ints, thread: int
) -> tuple[Bools, Bools, Bools, Bools]:
    """Notes that TMA begins to copy the elements ``at`` to global memory, for ``thread``: where a
    copy to it is under way, a write is not known, another thread copies it, too, and TMA may not
    see a write."""
    threads = np.full(at.size, thread)
    clocks.check_sharing(threads[:1])
    flying = trace.flight[at] != NO_AGENT
    wrong = unknown_write(clocks, trace, at, threads)
    leaver = trace.leaver[at]
    again = (leaver != NO_AGENT) & (leaver != thread)
    unseen = np.asarray(trace.unfenced[:, at].any(axis=0))
    warp = thread // WARP
    trace.read_epoch[warp, at], trace.read_lane[warp, at] = NEVER, thread % WARP
    trace.leaver[at], trace.leaving[at] = thread, 0
    trace.met[at] = 0
    return flying, wrong, again, unseen


def commit_stores(trace: LastAccesses, threads: Ints) -> None:
    trace.leaving[np.isin(trace.leaver, threads)] += 1


def await_stores(clocks: Clocks, trace: LastAccesses, threads: Ints, pending: int) -> None:
    """All but the last ``pending`` groups of each of these threads have been read."""
    done = np.isin(trace.leaver, threads) & (trace.leaving > pending)
    thread = trace.leaver[done]
    warp = thread // WARP
    trace.read_epoch[warp, np.flatnonzero(done)] = clocks.now[warp]
    trace.read_lane[warp, np.flatnonzero(done)] = thread % WARP
    trace.leaver[done], trace.leaving[done] = NO_AGENT, 0


def begin_read(
    clocks: Clocks, trace: LastAccesses, at: Ints, warp: int
) -> tuple[Bools, Bools, Bools]:
    """Notes that a warp's wgmma begins to read the elements ``at``: where a copy to it is under
    way, a write is not known, and the tensor cores may not see a write."""
    if not clocks.sharing[warp].all():
        raise Unsupported("lanes of a warp that have waited for different phases")
    flying = trace.flight[at] != NO_AGENT
    wrong = unknown_write(clocks, trace, at, np.full(at.size, warp * WARP))
    agent = trace.write_agent[at]
    by_warp = (agent != NO_AGENT) & (agent < clocks.warps)
    unseen = by_warp & trace.unfenced[np.where(by_warp, agent, 0), at]
    trace.read_epoch[warp, at], trace.read_lane[warp, at] = NEVER, MET
    trace.reading[warp, at] = 0
    trace.met[at] = 0
    return flying, wrong, unseen


def commit_reads(trace: LastAccesses, warps: Ints) -> None:
    own = trace.reading[warps]
    trace.reading[warps] = np.where(own == NO_AGENT, own, own + 1)


def await_reads(clocks: Clocks, trace: LastAccesses, warps: Ints, pending: int) -> None:
    """All but the last ``pending`` groups of wgmma of these warps have ended."""
    for warp in warps:
        done = trace.reading[warp] > pending
        trace.read_epoch[warp, done] = clocks.now[warp]
        trace.reading[warp, done] = NO_AGENT
