"""Results of a run in the store of measured results, each as soon as it is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from gemmgen.base.errors import GemmgenError
from gemmgen.base.source import Source
from gemmgen.explore.autotune.shape_tuning import Keeper
from gemmgen.explore.request import Request
from gemmgen.explore.results.canonical_names import CanonicalNames, canonical, renamed
from gemmgen.explore.results.measured_result import (
    MachineInfo,
    MeasuredResult,
    ProblemKey,
    terms_of,
)
from gemmgen.explore.results.results_store import Results
from gemmgen.explore.tune.measuring import DeviceInfo
from gemmgen.explore.tune.tuner import Tuned
from gemmgen.language import parse_schedule
from gemmgen.schedule.formatting import format_schedule

NEAR = 3
"""Other shapes whose fastest schedules are tried."""


class StoreKeeper:
    """Keeps results in ``results``, as measured on ``machine``.

    Stale results are candidates, too: what gemmgen emits for them now is measured again.  Those
    that compute f32 from bf16 terms are candidates of a request that allows it.
    """

    def __init__(self, results: Results, machine: MachineInfo):
        self._results, self._machine = results, machine
        self._mine: dict[tuple[Request, str], MeasuredResult] = {}
        self._earlier: dict[tuple[Request, str], tuple[MeasuredResult, ...]] = {}

    def stored(self, request: Request) -> Sequence[str]:
        key = ProblemKey.of_request(request)
        found = (
            *self._results.exact(key, self._machine.gpu),
            *self._results.nearest(key, self._machine.gpu, NEAR),
        )
        names = CanonicalNames.of(request.problem).reversed()
        texts: list[str] = []
        for result in found:
            try:
                schedule = parse_schedule(Source(result.schedule))
            except GemmgenError:  # of a version with other words
                continue
            if terms_of(schedule) not in (None, request.terms):
                continue
            problem = request.problem
            own = renamed(schedule, names)
            own = replace(own, kernel=problem.kernel, same_bits=problem.same_bits)
            texts.append(format_schedule(own))
        return texts

    def keep(self, request: Request, text: str, ms: float, rival: float | None) -> None:
        result = MeasuredResult.of(
            text,
            request.shape,
            self._machine,
            ms / 1e3,
            vendor=None if rival is None else rival / 1e3,
            pitches=request.pitches,
        )
        self._earlier.setdefault((request, text), self._own(request, result.schedule))
        if self._results.record(result):
            self._mine[request, text] = result

    def drop(self, request: Request, text: str, *, wrong: bool) -> None:
        mine = self._mine.pop((request, text), None)
        earlier = self._earlier.pop((request, text), ())
        if wrong:
            schedule = format_schedule(canonical(parse_schedule(Source(text))))
            self._remove(self._own(request, schedule))
        elif mine is not None:
            self._remove((mine,))
            self._results.record(*earlier)

    def _own(self, request: Request, schedule: str) -> tuple[MeasuredResult, ...]:
        """The user's results of a schedule at the request's shape and pitches."""
        key = ProblemKey.of_request(request)
        return tuple(
            result
            for result in self._results.exact(key, self._machine.gpu)
            if (result.problem, result.schedule) == (key, schedule) and result.origin != "shipped"
        )

    def _remove(self, results: Sequence[MeasuredResult]) -> None:
        if self._results.database is not None and results:
            self._results.database.remove(results)


class NoKeeper:
    """Leaves the store alone."""

    def stored(self, request: Request) -> Sequence[str]:
        del request
        return ()

    def keep(self, request: Request, text: str, ms: float, rival: float | None) -> None: ...

    def drop(self, request: Request, text: str, *, wrong: bool) -> None: ...


def keep_winner(tuned: Tuned) -> None:
    """Stores the winner of the search of a space, at each of its shapes."""
    winner = tuned.finals.winner
    if winner is None:
        return
    text, machine = tuned.points[winner.number].text, _machine(tuned.device_info)
    rivals = winner.rival or (None,) * len(winner.ms)
    Results.open().record(
        *(
            MeasuredResult.of(
                text, shape, machine, ms / 1e3, vendor=None if rival is None else rival / 1e3
            )
            for shape, ms, rival in zip(tuned.task.shapes, winner.ms, rivals, strict=True)
        )
    )


def _machine(info: DeviceInfo) -> MachineInfo:
    return MachineInfo(info.name, info.gpu.arch, info.driver, info.cuda)


def keeper(store: bool) -> Callable[[DeviceInfo], Keeper]:
    """What makes the keeper for a GPU: of this user's results, or of none."""

    def of(info: DeviceInfo) -> Keeper:
        if not store:
            return NoKeeper()
        return StoreKeeper(Results.open(), _machine(info))

    return of
