"""``tune``: ranks the legal points, searches them, and finds the winner."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence

from gemmgen import __version__
from gemmgen.base.record import record
from gemmgen.base.source import Source
from gemmgen.explore.cost import estimate, launched
from gemmgen.explore.tune.cubins import Builder, code_at
from gemmgen.explore.tune.legal_points import Census, Legal, Shape
from gemmgen.explore.tune.measuring import Candidate, DeviceInfo, Runner
from gemmgen.explore.tune.sampler import Explorer
from gemmgen.explore.tune.search import Search, SearchProgress, State, objective, value_of
from gemmgen.explore.tune.space import SearchSpace
from gemmgen.explore.tune.successive_halving import FIELD, Finals, finals
from gemmgen.explore.tune.trials import About, Log, Trial
from gemmgen.gpu.gpus import Gpu
from gemmgen.language import fmt_source

RACES = 0.2
"""The share of the time for the finals."""
FINALS = (5.0, 45.0)
"""Least and most seconds of the finals."""


@record
class Task:
    """A tuning task: the legal points of ``space`` at ``shapes``, by ``seed``, until ``end``."""

    space: SearchSpace
    census: Census
    shapes: tuple[Shape, ...]
    seed: int
    begin: float
    end: float
    batch: int


@record
class Tuned:
    """The result of a task.  ``finals.winner`` is None if no point was right."""

    task: Task
    device_info: DeviceInfo
    state: State
    finals: Finals
    seconds: float

    @property
    def points(self) -> dict[int, Legal]:
        return {point.number: point for point in self.task.census.legal}

    @property
    def wrong(self) -> list[Trial]:
        """Points whose kernels gave wrong results or crashed: errors of gemmgen."""
        return [t for t in self.state.trials.values() if t.status in ("wrong", "crashed")]


def tune(
    task: Task,
    builder: Builder,
    runner: Runner,
    log: Log,
    clock: Callable[[], float],
    watch: Callable[[SearchProgress], None] = lambda _: None,
) -> Tuned:
    """Searches and finds the winner; each trial is in ``log`` as soon as it is known."""
    points = {point.number: point for point in task.census.legal}
    ranked = rank(task.census.legal, task.shapes, runner.device_info.gpu)
    requires = task.space.schedule(ranked[0].number).requires
    explorer = Explorer(task.space, ranked, task.seed)
    search = Search(explorer, builder, runner, log, requires, clock, watch)
    known = [trial for trial in log.known if trial.number in points]
    search.resume(known)
    for trial in known:
        explorer.known(trial.number, objective(trial))
    search.run(until=task.end - _for_finals(task), batch=task.batch)
    entrants = _entrants(search.state, points, builder)
    found = finals(runner, entrants, points, clock, task.end, watch)
    for number, finding in found.found.items():
        trial = search.state.trials[number]
        wrong = Trial(number, trial.settings, finding.status, trial.code, reason=finding.reason)
        search.state.trials[number] = wrong
        log.add(wrong)
    return Tuned(task, runner.device_info, search.state, found, clock() - task.begin)


def about(task: Task, device_info: DeviceInfo) -> About:
    """The header of this task's trials file."""
    return About(
        gemmgen=__version__,
        code=code_at(task.census.legal[0].text),
        schedule=fmt_source(Source(_without_comments(task.space.source.text))),
        sets=tuple(task.space.sets.items()),
        shapes=task.shapes,
        gpu=device_info.name,
        arch=device_info.arch,
    )


def _without_comments(text: str) -> str:
    return "".join(re.sub(r"\s*#.*", "", line) + "\n" for line in text.splitlines())


def rank(legal: Sequence[Legal], shapes: Sequence[Shape], gpu: Gpu) -> tuple[Legal, ...]:
    """The points by their estimates, the mean over the shapes; of equals the first."""

    def mean(point: Legal) -> float:
        sizes = (launched(point.block, shape, gpu) for shape in shapes)
        return sum(math.log(estimate(each, gpu)) for each in sizes)

    return tuple(sorted(legal, key=lambda point: (mean(point), point.number)))


def _for_finals(task: Task) -> float:
    least, most = FINALS
    return min(most, max(least, RACES * (task.end - task.begin)))


def _entrants(
    state: State, points: dict[int, Legal], builder: Builder
) -> list[tuple[Trial, Candidate]]:
    """The best trials, one for each code; those of an earlier search are compiled again."""
    best: dict[str, Trial] = {}
    for trial in sorted(state.timed, key=lambda t: (value_of(t), t.number not in state.candidates)):
        best.setdefault(trial.code, trial)
    chosen = list(best.values())[: FIELD[0]]
    missing = [points[t.number] for t in chosen if t.number not in state.candidates]
    for built in builder.submit(missing)() if missing else ():
        if built.candidate is not None:
            state.candidates[built.number] = built.candidate
    return [(t, state.candidates[t.number]) for t in chosen if t.number in state.candidates]
