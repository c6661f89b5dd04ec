"""Many random schedules, on several processes: their coverage, and the failures."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count as numbers
from itertools import islice

from gemmgen.base.errors import CannotCheck
from gemmgen.base.processes import interrupts_held, serve_quietly, worker_pool
from gemmgen.base.record import record
from gemmgen.fuzz.blame import blamed
from gemmgen.fuzz.dice import Dice
from gemmgen.fuzz.factors import EVERY_PAIR, Pair, pairs
from gemmgen.fuzz.random_schedules import schedule_at
from gemmgen.fuzz.shrink import Small, shrink
from gemmgen.fuzz.trial import Failure, Late, Verdict, judge

BATCH = 4
"""Schedules of one job of a process."""
COMPILED = 10
"""One of this many schedules is compiled by NVRTC, if requested."""
SHRUNK = 5
"""Failures of different kinds that are shrunk."""

Words = tuple[str, ...]
"""Words that no schedule has."""


@record
class Judged:
    """The ``index``-th schedule of a seed and its result."""

    seed: int
    index: int
    text: str
    verdict: Verdict
    without: Words = ()

    @property
    def replay(self) -> str:
        return replay_of(self.seed, self.index, self.without)


def replay_of(seed: int, index: int, without: Words) -> str:
    """The argument of ``--replay``, and what the schedule was drawn with."""
    return " ".join((f"{seed}:{index}", *(f"--without {word}" for word in without)))


@record
class LostTrial:
    """A schedule that workers of a cluster did not answer for; ``replay`` is as ``Judged``'s."""

    replay: str
    reason: str


@record
class Found:
    """A trial that failed; ``small`` if it was shrunk."""

    trial: Judged
    failure: Failure
    small: Small | None = None


@dataclass
class Tally:
    """The results of a campaign so far."""

    schedules: int = 0
    runs: int = 0
    seconds: float = 0.0
    refused: Counter[str] = field(default_factory=Counter[str])
    unseen: set[Pair] = field(default_factory=lambda: set(EVERY_PAIR))
    """Pairs of classes, illegal ones among them."""
    found: list[Found] = field(default_factory=list[Found])
    lost: list[LostTrial] = field(default_factory=list[LostTrial])
    cause: KeyboardInterrupt | CannotCheck | None = None
    """What ended a campaign on a cluster early."""

    @property
    def share_refused(self) -> float:
        return self.refused.total() / max(self.schedules, 1)

    def add(self, trial: Judged) -> None:
        """Counts one trial; failures are added separately."""
        verdict = trial.verdict
        self.schedules += 1
        self.runs += verdict.runs
        if verdict.refused:
            self.refused[verdict.refused] += 1
            return
        self.unseen.difference_update(pairs(verdict.plan) if verdict.plan else ())


@record
class Limits:
    """When a campaign ends: after ``schedules``, or ``seconds``, whichever comes first."""

    schedules: int | None = None
    seconds: float | None = None

    def indices(self) -> Iterator[int]:
        return iter(range(self.schedules)) if self.schedules is not None else numbers()


def trial_at(
    seed: int,
    index: int,
    without: Words = (),
    *,
    compiled: bool = False,
    deadline: float = math.inf,
) -> Judged:
    """Draw one schedule and test it; raises ``Late`` after the ``deadline``."""
    text = schedule_at(seed, index, without)
    verdict = judge(text, Dice(seed, index, "cases"), compiled=compiled, deadline=deadline)
    return Judged(seed, index, text, verdict, without)


def run(
    seed: int,
    limits: Limits,
    jobs: int = 2,
    *,
    compiled: bool = False,
    without: Words = (),
    progress: Callable[[Tally], None] = lambda _: None,
) -> Tally:
    """A campaign; failures are attributed to a pass and, the first of each kind, shrunk.

    No schedule has a word in ``without`` (of ``factors.WORDS``).
    """
    tally, start = Tally(), time.time()
    deadline = math.inf if limits.seconds is None else start + limits.seconds
    source = _here(seed, limits, compiled, without, deadline)
    if jobs > 1:
        source = _spread(seed, limits, compiled, without, deadline, jobs)
    for trial in source:
        count(tally, trial, deadline)
        tally.seconds = time.time() - start
        progress(tally)
    tally.seconds = time.time() - start
    return tally


def count(tally: Tally, trial: Judged, deadline: float = math.inf) -> None:
    """Add a trial to the tally; a failure is attributed to a pass and, until ``deadline``,
    shrunk."""
    tally.add(trial)
    if trial.verdict.failure is not None:
        tally.found.append(_known(trial, tally.found, deadline))


def replay(seed: int, index: int, without: Words = (), *, compiled: bool = False) -> Tally:
    """Repeats one schedule's trial, with all layers."""
    tally, start = Tally(), time.time()
    count(tally, trial_at(seed, index, without, compiled=compiled))
    tally.seconds = time.time() - start
    return tally


def _known(trial: Judged, before: list[Found], deadline: float) -> Found:
    """The failure with its pass; shrunk if it is the first of its kind, and time is left."""
    failure = trial.verdict.failure
    assert failure is not None
    if time.time() > deadline:
        return Found(trial, failure)
    failure = blamed(trial.text, failure)
    same_kind = [f for f in before if f.small and _kind(f.failure) == _kind(failure)]
    shrunk = sum(1 for f in before if f.small)
    if same_kind or shrunk >= SHRUNK or time.time() > deadline:
        return Found(trial, failure)
    small = shrink(trial.text, failure, deadline)
    return Found(trial, failure, Small(small.text, blamed(small.text, small.failure), small.tried))


def _kind(failure: Failure) -> tuple[str, str, str]:
    return failure.layer, failure.kind, failure.blame


def _here(
    seed: int, limits: Limits, compiled: bool, without: Words, deadline: float
) -> Iterator[Judged]:
    """All trials in this process."""
    for index in limits.indices():
        both = compiled and index % COMPILED == 0
        with suppress(Late):
            yield trial_at(seed, index, without, compiled=both, deadline=deadline)
        if time.time() > deadline:
            return


def batch(
    seed: int,
    drawn: tuple[tuple[int, str], ...],
    compiled: bool,
    without: Words,
    deadline: float = math.inf,
) -> list[Judged]:
    """One job of a process: drawn schedules, since each depends on those before it; the trials
    that end before the ``deadline`` of all."""
    found: list[Judged] = []
    with suppress(Late):
        for index, text in drawn:
            both = compiled and index % COMPILED == 0
            verdict = judge(text, Dice(seed, index, "cases"), compiled=both, deadline=deadline)
            found.append(Judged(seed, index, text, verdict, without))
    return found


def _spread(
    seed: int, limits: Limits, compiled: bool, without: Words, deadline: float, jobs: int
) -> Iterator[Judged]:
    """Trials from ``jobs`` processes, in the order in which they end."""
    drawn = ((index, schedule_at(seed, index, without)) for index in limits.indices())
    running: set[Future[list[Judged]]] = set()
    with worker_pool(jobs, serve_quietly) as pool:
        while True:
            late = time.time() > deadline
            some = () if late or len(running) > 2 * jobs else tuple(islice(drawn, BATCH))
            if some:
                with interrupts_held():
                    running.add(pool.submit(batch, seed, some, compiled, without, deadline))
            elif not running:
                return
            # Results are taken between draws, each of which takes a while.
            done, running = wait(running, 0 if some else None, FIRST_COMPLETED)
            for future in done:
                yield from future.result()
