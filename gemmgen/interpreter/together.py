"""What the machines of some blocks have in common: shared memory, barriers, the scheduler."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from gemmgen.interpreter.checked_memory import Elements
from gemmgen.interpreter.phases import BarrierState
from gemmgen.interpreter.scheduler import Scheduler, Waiting
from gemmgen.interpreter.simt import Lanes, Mask, Trap, left_out
from gemmgen.ir.target import WARP
from gemmgen.numerics.operators import Bools, Ints

NAMED = 16
"""Named barriers of a block."""
CLUSTER = NAMED
"""The number of a cluster's barrier.  Each block counts its own arrivals, since the blocks of a
cluster are interpreted side by side."""


class NamedBarriers:
    """The named barriers of some blocks: how many threads each needs now (0: none has come), how
    many have come, and how often it was passed."""

    def __init__(self, blocks: int, scheduler: Scheduler):
        self.needed, self.come, self.passed = (
            np.zeros((blocks, NAMED + 1), np.int64) for _ in range(3)
        )
        self._scheduler = scheduler

    def sync(self, number: int, threads: int, lanes: Lanes, mask: Mask) -> None:
        """The lanes in ``mask`` wait until ``threads`` of their block have come."""
        arriving = lanes.of_blocks(mask)
        blocks = arriving > 0
        first = 0 if mask is None else int(np.argmax(mask))
        alone = left_out(mask, WARP)
        if alone is not None:
            raise Trap("barrier", lanes.name(alone), number, "not all lanes of its warp come to it")
        problem = self._problem(number, threads, arriving)
        if problem:
            raise Trap("barrier", lanes.name(first), number, problem)
        needed, come = self.needed[:, number], self.come[:, number]
        needed[blocks] = threads
        come += arriving
        begun = self.passed[:, number].copy()
        complete: Bools = blocks & (come == threads)
        self.passed[complete, number] += 1
        needed[complete] = come[complete] = 0

        def ready() -> bool:
            return bool((self.passed[blocks, number] > begun[blocks]).all())

        def what() -> str:
            there = int(self.come[blocks, number].max())
            return f"barrier {number}, to which {there} of {threads} threads have come"

        self._scheduler.wait(Waiting(ready, "barrier", number, lanes.name(first), what))

    def _problem(self, number: int, threads: int, arriving: Ints) -> str:
        """What is wrong with this many ``arriving`` of each block; empty if nothing is."""
        if threads % WARP or not threads:
            return f"{threads} threads are not number of whole warps"
        needed, come = self.needed[:, number], self.come[:, number]
        if ((arriving > 0) & (needed != 0) & (needed != threads)).any():
            return f"{threads} threads, but others come with another number"
        return f"more than {threads} threads come" if (come + arriving > threads).any() else ""


@dataclass
class Together:
    """What is shared by the machines that run some blocks."""

    blocks: int
    scheduler: Scheduler
    memory: dict[str, Elements] = field(default_factory=dict[str, Elements])
    """Shared arrays, by name."""
    barriers: dict[tuple[str, int, int], BarrierState] = field(
        default_factory=dict[tuple[str, int, int], BarrierState]
    )
    """Barriers in shared memory, by name, block and number."""
    named_barriers: NamedBarriers = field(init=False)

    def __post_init__(self) -> None:
        self.named_barriers = NamedBarriers(self.blocks, self.scheduler)

    def end(self) -> None:
        """The blocks end; raises ``Trap`` if a box is under way."""
        for barrier in self.barriers.values():
            for box in barrier.landing:
                first = int(box.places[0])
                raise box.target.trap(box.thread, first, "a copy that is not waited for")
