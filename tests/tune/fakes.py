"""A builder and a runner without compiler and GPU, on their own clock."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from math import log2
from pathlib import Path

from gemmgen.base.source import Source
from gemmgen.explore.tune.cubins import Built
from gemmgen.explore.tune.legal_points import Census, Legal, census, judge
from gemmgen.explore.tune.measuring import Candidate, DeviceInfo, Reading, Rejection, Screen
from gemmgen.explore.tune.space import SearchSpace
from gemmgen.explore.tune.trials import About, Log, Trial
from gemmgen.explore.tune.tuner import Task, Tuned, about, tune
from gemmgen.gpu.gpus import GPUS
from gemmgen.gpu.store import Stored
from gemmgen.gpu.timing import LEAD, SPAN
from gemmgen.ir.interface import Interface

SHAPE = (2048, 2048, 2048)
HERE = DeviceInfo("Fake GPU", "sm_90", GPUS["H200"])
FILES = Stored(Path("a.cubin"), Path("a.cu"))
CUBLAS = 0.34
SAMPLE, SCREENED = (LEAD + SPAN) / 1e3, 0.008
"""Seconds of a sample in a race, and in a first timing."""
FEW = 10
TEXT = """
tile            m={64, 128} n={64, 128, 256} k=8
cache_shared    A[k, m] B
register_block  m={4, 8} n=8 order={rows, zigzag}
vectorize       A B C width={1, 4}
pad             A by=4
double_buffer   A B stages={1, 2}
raster          group={1, 8}
"""

SMALL = """
tile            m={64, 128} n={64, 128} k=8
cache_shared    A[k, m] B
register_block  m={4, 8} n=8
vectorize       A B C width={1, 4}
double_buffer   A B stages={1, 2}
"""
"""32 points, all legal."""


def interface() -> Interface:
    return Interface("gemm", (), (256, 1), (), (), 0, 0, ())


@cache
def points(text: str = TEXT) -> tuple[SearchSpace, Census]:
    space = SearchSpace(Source(text, "space.sched"))
    return space, census(space, [SHAPE])


def cost(point: Legal) -> float:
    """Milliseconds: smooth in the sizes, and best where the model expects nothing good."""
    s = dict(point.settings)
    far = abs(log2(int(s["tile.m"]) / 64)) + 2 * abs(log2(int(s["tile.n"]) / 256))
    far += (s.get("register_block.order") == "zigzag") + abs(log2(int(s["register_block.m"]) / 4))
    far += 2 * (s["vectorize.width"] == 4) + (s["double_buffer.stages"] == 2)
    far += 0.5 * (s.get("raster.group") == 8) + 0.7 * (s.get("tile.k") == 8)
    return 0.32 * (1 + 0.07 * far)


@dataclass
class Clock:
    """Seconds that pass where the fakes say so."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class FakeBuilder:
    """Compiles in no time; ``broken`` points do not compile."""

    clock: Clock
    seconds: float = 0.0
    broken: Callable[[Legal], str] = lambda point: ""
    registers: Callable[[Legal], int] = lambda point: point.block.registers
    code: Callable[[Legal], str] = lambda point: f"code {point.number}"
    built: list[int] = field(default_factory=list[int])

    def submit(self, points: Sequence[Legal]) -> Callable[[], tuple[Built, ...]]:
        def wait() -> tuple[Built, ...]:
            self.clock.now += self.seconds
            self.built += [point.number for point in points]
            return tuple(self._one(point) for point in points)

        return wait

    def _one(self, point: Legal) -> Built:
        code, reason = self.code(point), self.broken(point)
        if reason:
            return Built(point.number, code, reason=reason)
        candidate = Candidate(point.number, interface(), "sm_80", FILES)
        return Built(point.number, code, candidate, self.registers(point), 0)


@dataclass
class FakeRunner:
    """Times points by ``cost``; those of ``wrong`` are so, ``later`` only once they were timed.

    Timing a point that was not found right fails the test, and so does timing a wrong one.
    ``events`` has every question in order.
    """

    clock: Clock
    by_number: dict[int, Legal]
    noise: Callable[[int, int], float] = lambda number, times: 0.0
    wrong: Callable[[Legal], bool] = lambda point: False
    later: Callable[[Legal], bool] = lambda point: False
    unproved: Callable[[Legal], bool] = lambda point: False
    shapes: int = 1
    events: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    right: set[int] = field(default_factory=set[int])
    before: Callable[[int], None] = lambda number: None

    @property
    def device_info(self) -> DeviceInfo:
        return HERE

    def check(self, candidates: Sequence[Candidate]) -> tuple[Rejection | None, ...]:
        return tuple(self._checked(candidate.number) for candidate in candidates)

    def time(
        self, candidates: Sequence[Candidate], rounds: int, screen: Screen | None = None
    ) -> tuple[Reading, ...]:
        found: list[Reading] = []
        for at, candidate in enumerate(candidates):
            number = candidate.number
            assert number in self.right, f"point {number} is timed and was not found right"
            self.before(number)
            self.events.append(("time", number))
            ms = cost(self.by_number[number]) * (1 + self.noise(number, len(self.events)))
            self.clock.now += rounds * (SAMPLE if screen is None else SCREENED)
            finding = None
            if self.later(self.by_number[number]):
                finding = Rejection("wrong", "C[0, 0] = nan after it was timed")
            times, rivals = (ms,) * self.shapes, (CUBLAS,) * self.shapes
            found.append(Reading(number, times, rivals, finding))
            del at
        return tuple(found)

    def prove(self, candidate: Candidate, text: str) -> Rejection | None:
        self.events.append(("prove", candidate.number))
        point = self.by_number[candidate.number]
        assert text == point.text
        return Rejection("wrong", "ragged edge") if self.unproved(point) else None

    def _checked(self, number: int) -> Rejection | None:
        self.events.append(("check", number))
        if self.wrong(self.by_number[number]):
            return Rejection("wrong", "C[0, 0] = 1.0 instead of 2.0")
        self.right.add(number)
        return None


@dataclass
class Run:
    """A whole tuning on fakes: its runner and builder may be looked at afterwards."""

    tuned: Tuned
    runner: FakeRunner
    builder: FakeBuilder
    order: list[Trial]


def run(
    space: SearchSpace,
    found: Census,
    *,
    seed: int = 0,
    seconds: float = 300.0,
    log: Path | None = None,
    resume: bool = False,
    batch: int = 16,
    building: dict[str, object] | None = None,
    **measuring: object,
) -> Run:
    clock = Clock()
    builder = FakeBuilder(clock, **(building or {}))
    by_number = {point.number: point for point in found.legal}
    runner = FakeRunner(clock, by_number, **measuring)
    task = Task(space, found, (SHAPE,), seed, 0.0, seconds, batch)
    kept = Kept(log, about(task, HERE), resume=resume)
    tuned = tune(task, builder, runner, kept, clock)
    kept.close()
    return Run(tuned, runner, builder, kept.order)


class Kept(Log):
    """A log that remembers the order of its trials."""

    def __init__(self, path: Path | None, about: About, *, resume: bool = False):
        super().__init__(path, about, resume=resume)
        self.order: list[Trial] = []

    def add(self, trial: Trial) -> None:
        self.order.append(trial)
        super().add(trial)


class FragileRunner(FakeRunner):
    """For ``RemoteRunner``: of a few points some end the process, raise, or never answer."""

    def __init__(self, killers: frozenset[int], hangs: frozenset[int] = frozenset()):
        space = SearchSpace(Source(TEXT, "space.sched"))
        few = (judge(space, number, [SHAPE]) for number in range(FEW))
        by_number = {point.number: point for point in few if isinstance(point, Legal)}
        super().__init__(Clock(), by_number, before=self._live)
        self.killers, self.hangs = killers, hangs
        self.right = set(by_number)

    def _live(self, number: int) -> None:
        if number in self.hangs:
            time.sleep(60)
        if number in self.killers and number % 2:
            raise RuntimeError("cudaErrorIllegalAddress")
        if number in self.killers:
            os._exit(9)
