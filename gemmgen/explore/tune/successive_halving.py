"""The winner of a search, by successive halving of the best of the first timing.

A first timing is a few launches; over thousands of kernels its best is partly luck.  So the best
are timed again, interleaved with each other and cuBLAS, each sample after milliseconds of the same
kernel (``gpu.timing``), since power limits the large ones.  Each race drops half of them and has
more rounds.  The medians of the last race decide, and the winner must pass all checks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from gemmgen.base.record import record
from gemmgen.explore.tune.legal_points import SearchPoint
from gemmgen.explore.tune.measuring import Candidate, Reading, Rejection, Runner
from gemmgen.explore.tune.search import SearchProgress, value_of
from gemmgen.explore.tune.trials import Trial
from gemmgen.gpu.timing import LEAD, SPAN

FIELD = (48, 24, 12, 6)
"""The candidates of each race; the first ones are skipped if there is little time."""
FEWEST, MOST = 3, 40
"""Rounds of a race."""
SETUP = 1
"""Rounds' worth of time before a race's first round."""


@record
class Finals:
    """The last race's readings, fastest first, and the trials that were disqualified.

    ``winner`` is the first of ``readings`` that passed every check, or None.
    """

    winner: Reading | None
    readings: tuple[Reading, ...]
    found: Mapping[int, Rejection]


def finals(
    runner: Runner,
    entrants: Sequence[tuple[Trial, Candidate]],
    points: Mapping[int, SearchPoint],
    clock: Callable[[], float],
    until: float,
    watch: Callable[[SearchProgress], None] = lambda _: None,
) -> Finals:
    """Races between ``entrants``, the fastest first, that end at about ``until``.

    They are checked first: those of an earlier search were compiled again.
    """
    times = {trial.number: trial.ms for trial, _ in entrants}
    found: dict[int, Rejection] = {}
    left: list[Candidate] = []
    everyone = [candidate for _, candidate in entrants]
    for candidate, finding in zip(everyone, runner.check(everyone), strict=True):
        if finding is None:
            left.append(candidate)
        else:
            found[candidate.number] = finding
    readings: list[Reading] = []
    for race, size in enumerate(FIELD):
        if not left or (readings and len(left) <= size):
            continue
        few, races = left[:size], len(FIELD) - race
        rounds = _rounds_in((until - clock()) / races, [times[c.number] for c in few])
        if rounds < FEWEST and races > 1:
            continue
        left, rounds = few, max(FEWEST, min(MOST, rounds))
        watch(SearchProgress(f"race of {len(left)}", race, len(FIELD), None))
        readings = []
        for reading in runner.time(left, rounds):
            if reading.finding is None:
                readings.append(reading)
            else:
                found[reading.number] = reading.finding
        readings.sort(key=lambda reading: (value_of(reading), reading.number))
        by_number = {candidate.number: candidate for candidate in left}
        left = [by_number[reading.number] for reading in readings]
    for reading, candidate in zip(readings, left, strict=True):
        watch(SearchProgress("proving", len(FIELD), len(FIELD), None))
        finding = runner.prove(candidate, points[candidate.number].text)
        if finding is None:
            right = tuple(r for r in readings if r.number not in found)
            return Finals(reading, right, found)
        found[reading.number] = finding
    return Finals(None, (), found)


def _rounds_in(seconds: float, times: Sequence[tuple[float, ...]]) -> int:
    """The rounds of these candidates and cuBLAS that fit into ``seconds``."""
    once = sum(max(LEAD, ms) + max(SPAN, ms) for each in times for ms in each) / 1e3
    once *= (len(times) + 1) / max(1, len(times))
    return int(seconds / max(once, 1e-9)) - SETUP
