"""mbarriers: which phase each is in, what it lacks, and what it passes on.

One order of events is walked, in which a copy lands as soon as its bytes are expected.  It speaks
for all orders, since three things are checked:

- who arrives knows that the phase before has ended: so no arrival counts for another phase;
- who waits knows that the phase before the awaited one has ended: so the parity is that one's;
- a phase ends only once those who waited for the phase before are known to have done so: so none
  of them misses it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from gemmgen.ir.barriers import BarrierArray
from gemmgen.ir.thread_code import Node, inner
from gemmgen.numerics.operators import Ints
from gemmgen.prove.conditions import Condition
from gemmgen.prove.data import Data, Number, Pick
from gemmgen.prove.warp_clocks import NO_AGENT, Clocks, LastAccesses

ALWAYS, NEVER = Number(1.0), Number(0.0)
"""Whether something is so: a ``Pick`` of these, if sizes decide it."""


@dataclass
class BarrierStates:
    """Of each mbarrier: ``count`` arrivals end a phase; it lacks ``pending`` of them, and
    ``bytes``; ``collected`` is what has arrived in the present phase, ``passed`` what those know
    who waited for an ended one; ``open``: copies have landed that no thread has waited for.
    ``ended`` and ``before`` are the epochs of the last two ends of phases, ``waited`` those of the
    warps that have waited.  ``starter`` is the warp that initialized it, in its epoch ``begun``;
    ``fenced``: TMA sees it.  ``guards`` say in which calls all of that is so.  ``tests`` are the
    mbarrier and the parity that a variable's test was of.

    In a cluster: each block has its own mbarriers, in the order of ranks; ``timed`` as in
    ``Clocks``.  ``remote``: another block has arrived since the cluster's last barrier, and the
    own block has not waited for that phase.  ``loose``: an arrival may count for the phase before,
    or after, in place of another one; ``counts``: it counts bytes."""

    warps: int
    capacity: int
    agents: int
    timed: int = 0
    first: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    numbers: dict[str, Ints] = field(default_factory=dict[str, Ints])
    guards: list[Data] = field(default_factory=list[Data])
    tests: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])

    FIELDS = (
        "count",
        "pending",
        "bytes",
        "parity",
        "begun",
        "fenced",
        "ended",
        "before",
        "starter",
        "open",
        "remote",
        "loose",
        "counts",
    )

    def copy(self) -> BarrierStates:
        numbers = {name: own.copy() for name, own in self.numbers.items()}
        return BarrierStates(
            self.warps,
            self.capacity,
            self.agents,
            self.timed,
            dict(self.first),
            numbers,
            list(self.guards),
            dict(self.tests),
        )

    def begin(self) -> None:
        """The numbers of all mbarriers, before any is declared."""
        capacity, agents = self.capacity, self.agents
        self.numbers = {name: np.zeros(capacity, np.int64) for name in self.FIELDS}
        self.numbers |= {
            "collected": np.zeros((capacity, agents), np.int64),
            "passed": np.zeros((capacity, agents), np.int64),
            "waited": np.zeros((capacity, self.warps), np.int64),
        }
        self.guards = [ALWAYS] * capacity

    def declare(self, node: BarrierArray) -> None:
        """Adds an array of mbarriers."""
        if not self.numbers:
            self.begin()
        begin = sum(size for _, size in self.first.values())
        self.first[node.name] = begin, node.size

    def __getattr__(self, name: str) -> Ints:
        try:
            return self.__dict__["numbers"][name]
        except KeyError:
            raise AttributeError(name) from None

    def settle(self, clocks: Clocks, traces: list[LastAccesses], b: int) -> Ints | None:
        """Ends the phase if it lacks nothing; then the warps whose waits for the phase before are
        not known to have ended, if there are any."""
        if self.pending[b] or self.bytes[b]:
            return None
        agent, timed = self.warps + b, self.timed
        numbers = clocks.numbers_of(np.array([agent]))
        self.before[b], self.ended[b] = self.ended[b], clocks.now[timed + agent]
        self.passed[b] = np.maximum(self.passed[b], self.collected[b])
        self.passed[b, numbers] = clocks.now[numbers]
        known = self.collected[b, timed : timed + self.warps]
        missing = np.flatnonzero(self.waited[b] > known)
        for trace in traces:
            landed = trace.flight == b
            self.open[b] |= int(landed.any())
            trace.write_agent[landed], trace.write_epoch[landed] = agent, clocks.now[agent]
            trace.flight[landed] = NO_AGENT
        clocks.now[numbers] += 1
        self.parity[b] ^= 1
        self.pending[b] = self.count[b]
        return missing


def barrier_count(body: tuple[Node, ...]) -> int:
    """mbarriers that a kernel declares."""
    own = (node.size for node in body if isinstance(node, BarrierArray))
    return sum(own) + sum(barrier_count(inner(node)) for node in body)


def with_guards(barriers: BarrierStates, function: Callable[[Data], Data]) -> None:
    """Changes each guard."""
    barriers.guards = [function(guard) for guard in barriers.guards]


def conditions_of(barriers: BarrierStates) -> tuple[Condition, ...]:
    """What the state of mbarriers assumes of sizes."""
    return tuple(guard.condition for guard in barriers.guards if isinstance(guard, Pick))
