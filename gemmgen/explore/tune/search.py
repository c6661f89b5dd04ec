"""The search: batches of points are proposed, compiled, checked and timed, in a pipeline.

While one batch is measured a later one is proposed, and those between are compiled.  Proposals
depend on results, never on their time of arrival, so that one seed gives one order of trials.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Protocol

from gemmgen.base.record import record
from gemmgen.explore.tune.cubins import Builder, Built
from gemmgen.explore.tune.legal_points import SearchPoint
from gemmgen.explore.tune.measuring import Candidate, Reading, Rejection, Runner, Screen
from gemmgen.explore.tune.trials import Status, Trial
from gemmgen.limits.device_limits import satisfies
from gemmgen.schedule.model import Require

AHEAD = 2
"""Batches that are compiled, or being compiled, while one is measured."""
SCREEN = 3
"""Rounds of the first timing."""
HOPELESS = 1.5
"""A kernel over this many times the best one's time is timed once."""
UNKNOWN = 6.0
"""The same against cuBLAS, while there is no best one."""


class Proposer(Protocol):
    """Proposes the points of a search, each once."""

    @property
    def left(self) -> int:
        """Points that are known and were not proposed yet."""
        ...

    def ask(self, count: int) -> Sequence[SearchPoint]:
        """The next points, at most ``count`` of them; none if there are no others."""
        ...

    def tell(self, number: int, value: float | None) -> None:
        """The objective of a proposed point, to be minimized; None for one that failed."""
        ...


class TrialLog(Protocol):
    """Receives each trial as soon as it is known."""

    def add(self, trial: Trial) -> None: ...


@record
class SearchProgress:
    """The state of a search for a progress bar."""

    stage: str
    done: int
    total: int
    best: Trial | None


@dataclass
class State:
    """The results of a search: its trials by point, and the kernels that can be timed again.

    ``measured``: seconds of all batches; ``waited``: seconds of these spent waiting for the
    compiler.
    """

    trials: dict[int, Trial] = field(default_factory=dict[int, Trial])
    candidates: dict[int, Candidate] = field(default_factory=dict[int, Candidate])
    waited: float = 0.0
    measured: float = 0.0

    @property
    def timed(self) -> list[Trial]:
        """The timed trials, fastest first."""
        found = [trial for trial in self.trials.values() if trial.status == "timed"]
        return sorted(found, key=lambda trial: (value_of(trial), trial.number))

    @property
    def best(self) -> Trial | None:
        found = (trial for trial in self.trials.values() if trial.status == "timed")
        return min(found, key=lambda trial: (value_of(trial), trial.number), default=None)

    def count(self) -> Counter[Status]:
        return Counter(trial.status for trial in self.trials.values())


class Search:
    """Tries the points that ``explorer`` proposes until ``until``, or until all were tried.

    ``clock`` returns seconds; ``requires`` are the schedule's limits on registers and spills.
    """

    def __init__(
        self,
        explorer: Proposer,
        builder: Builder,
        runner: Runner,
        log: TrialLog,
        requires: Sequence[Require],
        clock: Callable[[], float],
        watch: Callable[[SearchProgress], None] = lambda _: None,
    ):
        self._explorer, self._builder, self._runner, self._log = explorer, builder, runner, log
        self._requires, self._clock, self._watch = tuple(requires), clock, watch
        self._codes: dict[str, Trial] = {}
        self.state = State()

    def resume(self, trials: Sequence[Trial]) -> None:
        """Adds the trials of an earlier search, which the explorer must not propose again."""
        for trial in trials:
            self._keep(trial)

    def run(self, until: float, batch: int) -> None:
        pending: deque[tuple[Sequence[SearchPoint], Callable[[], tuple[Built, ...]]]] = deque()

        def propose(most: int) -> None:
            while len(pending) < most and (points := self._explorer.ask(batch)):
                pending.append((points, self._builder.submit(points)))

        propose(AHEAD)
        with ThreadPoolExecutor(1) as thread:
            while pending and (self._clock() < until or self.state.best is None):
                points, wait = pending.popleft()
                begin = self._clock()
                built = wait()
                self.state.waited += self._clock() - begin
                measured = thread.submit(self._measure, points, built)
                propose(AHEAD)  # meanwhile
                for trial in measured.result():
                    self._finish(trial)
                if not pending:  # what was just measured may lead to others
                    propose(AHEAD)
                self.state.measured += self._clock() - begin

    def _measure(self, points: Sequence[SearchPoint], built: Sequence[Built]) -> list[Trial]:
        """One batch: its ``require`` lines, checks and times."""
        trials: dict[int, Trial] = {}
        again: list[Trial] = []
        ready: list[Candidate] = []
        fresh = {one.code for one in built} - self._codes.keys()
        for point, one in zip(points, built, strict=True):
            known = one.code, one.registers, one.spills
            trial = Trial(point.number, point.settings, "timed", *known)
            if one.candidate is None:
                trial = replace(trial, status="failed", reason=one.reason)
            elif reason := gate(one, self._requires):
                trial = replace(trial, status="gated", reason=reason)
            elif one.code in fresh:
                fresh.discard(one.code)
                ready.append(one.candidate)
            else:
                again.append(trial)
                continue
            trials[trial.number] = trial
        self._try(ready, trials)
        first_of = {trial.code: trial for trial in trials.values()} | self._codes
        for trial in again:
            first = first_of[trial.code]
            reason = f"the same code as point {first.number}"
            number, settings = trial.number, trial.settings
            trials[number] = replace(first, number=number, settings=settings, reason=reason)
        return list(trials.values())

    def _try(self, ready: Sequence[Candidate], trials: dict[int, Trial]) -> None:
        """Checks all of ``ready``, times those that are right, and completes their ``trials``."""
        if not ready:
            return

        def reject(number: int, finding: Rejection) -> None:
            trials[number] = replace(trials[number], status=finding.status, reason=finding.reason)

        right: list[Candidate] = []
        for candidate, finding in zip(ready, self._runner.check(ready), strict=True):
            if finding is None:
                right.append(candidate)
            else:
                reject(candidate.number, finding)
        for reading in self._runner.time(right, SCREEN, Screen(self._slowest())) if right else ():
            if reading.finding is None:
                trial = trials[reading.number]
                trials[reading.number] = replace(trial, ms=reading.ms, share=reading.share)
            else:
                reject(reading.number, reading.finding)
        self.state.candidates |= {c.number: c for c in right}

    def _slowest(self) -> float:
        best = self.state.best
        if best is None or best.share is None:
            return UNKNOWN
        return HOPELESS / min(best.share)

    def _finish(self, trial: Trial) -> None:
        self._keep(trial)
        self._log.add(trial)
        self._explorer.tell(trial.number, objective(trial))
        done = len(self.state.trials)
        self._watch(SearchProgress("trying", done, done + self._explorer.left, self.state.best))

    def _keep(self, trial: Trial) -> None:
        self.state.trials[trial.number] = trial
        if trial.code:
            self._codes.setdefault(trial.code, trial)


def value_of(trial: Trial | Reading) -> float:
    """The objective: the mean logarithm of the times, relative to cuBLAS's if there are any."""
    if trial.share is not None:
        return -sum(map(math.log, trial.share)) / len(trial.share)
    return sum(map(math.log, trial.ms)) / len(trial.ms)


def gate(built: Built, requires: Sequence[Require]) -> str:
    """The first ``require`` line that the compiled kernel does not meet, or an empty string."""
    known = {"registers": built.registers, "spills": built.spills}
    for require in requires:
        value = known.get(require.quantity)
        if value is not None and not satisfies(require, value):
            wanted = f"require {require.quantity} {require.op} {require.limit}"
            return f"{wanted}: {require.quantity} = {value}"
    return ""


def objective(trial: Trial) -> float | None:
    """The objective of a trial that an explorer gets; None if it was not timed."""
    return value_of(trial) if trial.status == "timed" else None
