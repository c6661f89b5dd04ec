"""Place the steps of a block in time, with schematic durations.

The block takes its steps in order, and so does each role of its warps on its own.  A load, an
asynchronous copy and a read of shared memory go on while it does what comes next, until a step
needs what they bring.  Only order and overlap are those of the program: how long each takes is a
choice, for the picture.
"""

from __future__ import annotations

from collections.abc import Sequence

from gemmgen.analyze.block_step import BlockStep
from gemmgen.base.record import record

TILE = 1.0
"""The arithmetic of one tile: the unit of time."""
LATENCY = 0.7
"""The latency of a tile's load."""
READING = 0.6
"""The latency of a read of shared memory, in steps of arithmetic."""
STORE, BARRIER, END = 0.06, 0.02, 0.3
"""What the block itself spends on a store of a tile, on a barrier, and on writing C."""
EPILOGUE = 1.2
"""The same on all slices of C together, where it is written in several."""
ISSUE, READ = 0.2, 0.05
"""What it spends on issuing a tile's load, and a read of shared memory, in steps of arithmetic."""


@record
class StepTime:
    """``step`` is under way from ``start`` to ``end``, and what it loads is first ``needed`` at
    that time; the block itself spends ``busy`` on it, at its begin.  All of an ``await`` is time in
    which its threads can do nothing."""

    step: BlockStep
    start: float
    end: float
    busy: float
    needed: float


def times_of(steps: Sequence[BlockStep]) -> tuple[StepTime, ...]:
    """The times of all ``steps`` except commits."""
    per_tile = sum(s.what == "multiply" and s.tile == 0 for s in steps)
    clock = _Clock(TILE / max(1, per_tile), _slices(steps), single=per_tile <= 1)
    for step in steps:
        clock.take(step)
    return tuple(
        StepTime(step, start, end, busy, clock.needed.get(at, end))
        for at, (step, start, end, busy) in enumerate(clock.times)
    )


def _slices(steps: Sequence[BlockStep]) -> int:
    """The longest run of writes of one role between its multiplications."""
    longest, runs = 1, dict[str, int]()
    for step in steps:
        if step.what == "write":
            runs[step.role] = runs.get(step.role, 0) + 1
            longest = max(longest, runs[step.role])
        elif step.what == "multiply":
            runs[step.role] = 0
    return longest


class _Clock:
    """``step``: the arithmetic of one step; ``slices`` of C are written one by one; ``single``: a
    tile is one step.

    What is on its way is known by the numbers of its times, until something waits for it;
    ``phases`` has those that a phase of a barrier waits for.
    """

    def __init__(self, step: float, slices: int, *, single: bool):
        self.step, self.single = step, single
        self.end = END if slices == 1 else EPILOGUE / slices
        self.clocks, self.role = {"": 0.0}, ""
        self.phases: dict[tuple[str, int | None, int], list[int]] = {}
        self.times: list[tuple[BlockStep, float, float, float]] = []
        self.needed: dict[int, float] = {}
        self.brought: dict[tuple[str, int, int | None], int] = {}
        self.issued: list[int] = []
        self.groups: list[list[int]] = []

    @property
    def now(self) -> float:
        """The time of the current role; all roles begin together."""
        return self.clocks.get(self.role, self.clocks[""])

    @now.setter
    def now(self, time: float) -> None:
        self.clocks[self.role] = time

    def take(self, step: BlockStep) -> None:
        self.role = step.role
        match step.what:
            case "commit":
                self.groups.append(self.issued)
                self.issued = []
            case "load" | "copy":
                self.load(step)
            case "store":
                self.spend(step, STORE, self.arrived((step.operand, step.tile, None)))
            case "wait":
                done = self.groups[: len(self.groups) - step.pending]
                del self.groups[: len(done)]
                self.spend(step, 0.0, self.awaited(*(at for group in done for at in group)))
            case "barrier":
                self.spend(step, BARRIER)
            case "read":
                self.bring(step, self.step * READ, self.step * READING)
            case "multiply":
                self.spend(step, self.step, self.operands(step))
            case "reduce" | "write":
                self.spend(step, self.end)
            case "release":
                self.count(step)
                self.spend(step, BARRIER)
            case "await":
                self.wait(step)
            case "expect":
                pass

    def load(self, step: BlockStep) -> None:
        """``direct``: for one step of arithmetic, like a read of shared memory."""
        direct = step.k is not None and not self.single
        issue = READ if direct else min(ISSUE, STORE / self.step)
        self.bring(step, self.step * issue, self.step if direct else LATENCY)

    def bring(self, step: BlockStep, busy: float, latency: float) -> None:
        """Begin a copy or a read that proceeds while the block continues."""
        if step.barrier:
            self.count(step)
        elif step.what == "copy":
            self.issued.append(len(self.times))
        else:
            self.brought[step.operand, step.tile, step.k] = len(self.times)
        self.times.append((step, self.now, self.now + latency, busy))
        self.now += busy

    def spend(self, step: BlockStep, duration: float, ready: float = 0.0) -> None:
        """Add time that the block spends itself, from ``ready`` on."""
        begin = max(self.now, ready)
        self.now = begin + duration
        self.times.append((step, begin, self.now, duration))

    def count(self, step: BlockStep) -> None:
        """The end of this step's time is one of those that a phase waits for."""
        self.phases.setdefault((step.barrier, step.stage, step.phase), []).append(len(self.times))

    def wait(self, step: BlockStep) -> None:
        """Wait for a phase; the phase before the first one counts as ended."""
        begin, counted = self.now, self.phases.get((step.barrier, step.stage, step.phase), [])
        self.now = max(begin, self.awaited(*counted))
        self.times.append((step, begin, self.now, self.now - begin))

    def operands(self, step: BlockStep) -> float:
        """The time at which the operands are in registers."""
        wanted = step.tile, step.k
        return self.arrived(*(key for key in self.brought if key[1:] == wanted))

    def arrived(self, *keys: tuple[str, int, int | None]) -> float:
        return self.awaited(*(self.brought.pop(key) for key in keys if key in self.brought))

    def awaited(self, *numbers: int) -> float:
        """When all of these times have ended."""
        ready = max((self.times[at][2] for at in numbers), default=0.0)
        for at in numbers:
            self.needed[at] = max(self.now, ready)
        return ready
