"""Tunes a list of shapes: divides the time, keeps the result of each, and records it at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from gemmgen.base.record import record
from gemmgen.explore.autotune.first_candidates import seeds
from gemmgen.explore.autotune.judged_candidates import Judge
from gemmgen.explore.autotune.proposals import Proposals
from gemmgen.explore.request import Request
from gemmgen.explore.tune.cubins import Builder
from gemmgen.explore.tune.measuring import Candidate, DeviceInfo, Reading, Runner
from gemmgen.explore.tune.search import Search, SearchProgress, State, value_of
from gemmgen.explore.tune.successive_halving import FIELD, Finals, finals
from gemmgen.explore.tune.trials import Trial

RACES = 0.25
"""The share of a shape's time for the races of the best, at most ``LONGEST`` seconds."""
LONGEST = 45.0
PROOF = 0.05
"""The share that is left for the checks of the winner."""

Outcome = Literal["proved", "so far", "none", "not reached"]
"""``proved``: the winner of races, and all checks passed.  ``so far``: the search was interrupted;
the best candidate was right, and timed briefly.  ``none``: no candidate was right."""


@record
class ShapeResult:
    """The best schedule at a request's shape; ``rival``: milliseconds of cuBLAS if it has such a
    call.  ``origin``: ``stored``, ``suggest #3`` or ``search``.  ``tried``: kernels that were
    measured or refused."""

    request: Request
    outcome: Outcome
    text: str | None = None
    ms: float | None = None
    rival: float | None = None
    origin: str = ""
    tried: int = 0

    @property
    def share(self) -> float | None:
        """cuBLAS's time over this one's."""
        return self.rival / self.ms if self.rival and self.ms else None

    @property
    def tflops(self) -> float | None:
        return 2 * math.prod(self.request.shape) / self.ms / 1e9 if self.ms else None


@dataclass
class Tuning:
    """The results so far, in the order of the shapes; ``wrong`` are kernels with wrong results, or
    that crashed: errors of gemmgen."""

    device_info: DeviceInfo
    requests: tuple[Request, ...]
    results: list[ShapeResult] = field(default_factory=list[ShapeResult])
    wrong: list[tuple[str, Trial]] = field(default_factory=list[tuple[str, Trial]])
    cause: KeyboardInterrupt | None = None
    """What ended the search early."""

    def __post_init__(self) -> None:
        self.results = [ShapeResult(request, "not reached") for request in self.requests]

    @property
    def complete(self) -> bool:
        """Whether each shape has a winner that passed all checks."""
        return all(result.outcome == "proved" for result in self.results)


class Keeper(Protocol):
    """Stores results as they arrive."""

    def stored(self, request: Request) -> Sequence[str]:
        """Schedules that were fast for the request, or near it, the best first."""
        ...

    def keep(self, request: Request, text: str, ms: float, rival: float | None) -> None:
        """Stores a checked and timed schedule before it returns."""
        ...

    def drop(self, request: Request, text: str, *, wrong: bool) -> None:
        """Removes what this run kept of a schedule, as a later measurement did not confirm it; what
        was stored before is stored again, unless its result is ``wrong``."""
        ...


class Lab(Protocol):
    """What a search needs of a machine with a GPU."""

    @property
    def device_info(self) -> DeviceInfo: ...

    @property
    def batch(self) -> int:
        """Candidates that are compiled at a time."""
        ...

    @property
    def builder(self) -> Builder: ...

    def searched(self) -> None:
        """Called when a search has ended: what is still to be compiled is not needed."""
        ...

    def judge(self, request: Request) -> Judge: ...

    def runner(self, request: Request) -> Runner: ...


Watch = Callable[[int, SearchProgress], None]
"""Is called with the shape's position and the state of its search."""


def tune_shapes(
    tuning: Tuning,
    lab: Lab,
    keeper: Keeper,
    clock: Callable[[], float],
    end: float,
    watch: Watch = lambda at, progress: None,
) -> None:
    """Fills in the results of ``tuning`` until ``end``.

    Each shape has an equal share of the time that is left when its search begins: what one does
    not use, the later ones have.
    """
    for at in range(len(tuning.requests)):
        begin = clock()
        share = max(0.0, end - begin) / (len(tuning.requests) - at)
        _ShapeTuning(tuning, at, lab, keeper, clock, begin, begin + share, watch).run()


class _ShapeTuning:
    """The search for one shape, from ``begin`` to ``end``."""

    def __init__(
        self,
        tuning: Tuning,
        at: int,
        lab: Lab,
        keeper: Keeper,
        clock: Callable[[], float],
        begin: float,
        end: float,
        watch: Watch,
    ):
        self._tuning, self._at, self._lab, self._keeper = tuning, at, lab, keeper
        self._clock, self._begin, self._end, self._watch = clock, begin, end, watch
        self._request = tuning.requests[at]
        self._kept: set[str] = set()

    def run(self) -> None:
        judge = self._lab.judge(self._request)
        first = seeds(self._request, self._keeper.stored(self._request), judge)
        self._proposals = Proposals(self._request, first, judge)
        runner, builder = self._lab.runner(self._request), self._lab.builder
        search = Search(self._proposals, builder, runner, self, (), self._clock, self._progress)
        self._state = search.state
        share = self._end - self._begin
        races = min(LONGEST, RACES * share)
        search.run(until=self._end - races - PROOF * share, batch=self._lab.batch)
        self._lab.searched()
        entrants = _entrants(search.state)[: FIELD[0]]
        points = self._proposals.proposed
        until = self._end - PROOF * share
        self._settle(finals(runner, entrants, points, self._clock, until, self._progress))

    def add(self, trial: Trial) -> None:
        """Records a trial if it is the best so far."""
        if trial.status in ("wrong", "crashed"):
            self._tuning.wrong.append((self._text(trial.number), trial))
            self._keeper.drop(self._request, self._text(trial.number), wrong=True)
        best = self._state.best
        if best is not None and best.number == trial.number:
            rival = trial.ms[0] * trial.share[0] if trial.share else None
            self._result("so far", trial.number, trial.ms[0], rival)
            self._keep(trial.number, trial.ms[0], rival)

    def _settle(self, found: Finals) -> None:
        """Stores the times of the last race, and removes what it did not confirm."""
        confirmed = set[str]()
        for reading in found.readings:
            confirmed.add(self._text(reading.number))
            self._keep(reading.number, reading.ms[0], _rival(reading))
        wrong = set(map(self._text, found.found))
        for text in self._kept - confirmed | wrong:
            self._keeper.drop(self._request, text, wrong=text in wrong)
        for number, rejection in found.found.items():
            trial = Trial(number, (), rejection.status, reason=rejection.reason)
            self._tuning.wrong.append((self._text(number), trial))
        if found.winner is None:
            tried = len(self._state.trials)
            self._tuning.results[self._at] = ShapeResult(self._request, "none", tried=tried)
        else:
            winner = found.winner
            self._result("proved", winner.number, winner.ms[0], _rival(winner))

    def _result(self, outcome: Outcome, number: int, ms: float, rival: float | None) -> None:
        proposal, tried = self._proposals.proposed[number], len(self._state.trials)
        self._tuning.results[self._at] = ShapeResult(
            self._request, outcome, proposal.text, ms, rival, proposal.origin, tried
        )

    def _keep(self, number: int, ms: float, rival: float | None) -> None:
        self._kept.add(self._text(number))
        self._keeper.keep(self._request, self._text(number), ms, rival)

    def _text(self, number: int) -> str:
        return self._proposals.proposed[number].text

    def _progress(self, progress: SearchProgress) -> None:
        self._watch(self._at, progress)


def _rival(reading: Reading) -> float | None:
    return reading.rival[0] if reading.rival else None


def _entrants(state: State) -> list[tuple[Trial, Candidate]]:
    """The timed trials, fastest first, one for each code."""
    best: dict[str, Trial] = {}
    for trial in sorted(state.timed, key=lambda t: (value_of(t), t.number)):
        if trial.number in state.candidates:
            best.setdefault(trial.code, trial)
    return [(trial, state.candidates[trial.number]) for trial in best.values()]
