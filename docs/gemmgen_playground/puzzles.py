"""Puzzles: a schedule to start from, and goals that counts decide.

A puzzle is a file of ``docs/playground/puzzles``, in the order of their names::

    title = "No bank conflicts"
    text = "What the reader is asked."
    shape = "1024"
    start = '''
    gemm C[m, n] = A[m, k] * B[k, n]
    '''

    [[goal]]
    text = "no bank conflicts"
    count = "bank conflicts"     # of METRICS
    at_most = 0                  # or at_least, equals, at_most_of_start (a factor)

Besides its goals, a solution computes what the start computes, and passes C0.
"""

from __future__ import annotations

import tomllib
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from gemmgen.analyze.analyzed_kernel import AnalyzedKernel
from gemmgen.analyze.explain import Explanation, explain
from gemmgen.base.errors import UsageError
from gemmgen.base.record import record
from gemmgen.base.source import Source
from gemmgen.gpu.gpus import DEFAULT, GPUS
from gemmgen.language import parse_schedule
from gemmgen.proof import round_trip
from gemmgen.proof.outcome import Subject
from gemmgen.schedule.model import Schedule
from gemmgen.schedule.written_shapes import resolve, written_shape
from gemmgen_playground.metrics import METRICS, Count

FOLDER = Path(__file__).parents[1] / "playground" / "puzzles"
TESTS = ("at_most", "at_least", "equals", "at_most_of_start")


@record
class Goal:
    """``text`` in words; the metric ``count`` has to be ``test`` (of ``TESTS``) ``wanted``."""

    text: str
    count: str
    test: str
    wanted: Count


@record
class Puzzle:
    """``shape`` is the one that is counted at, as ``--shape`` takes it."""

    name: str
    title: str
    text: str
    shape: str
    start: str
    goals: tuple[Goal, ...]


@record
class Grade:
    """A goal, whether it is met, and what was found, in words."""

    text: str
    passed: bool
    found: str


@cache
def all_of_them() -> tuple[Puzzle, ...]:
    """The puzzles in their order."""
    return tuple(_read(path) for path in sorted(FOLDER.glob("*.toml")))


def named(name: str) -> Puzzle:
    """The puzzle of this name; raises ``UsageError`` if there is none."""
    for puzzle in all_of_them():
        if puzzle.name == name:
            return puzzle
    raise UsageError(f"there is no puzzle {name}")


def _read(path: Path) -> Puzzle:
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    goals = tuple(_goal(goal) for goal in data["goal"])
    start = data["start"].lstrip("\n")
    return Puzzle(path.stem, data["title"], data["text"].strip(), data["shape"], start, goals)


def _goal(data: dict[str, Any]) -> Goal:
    (test,) = (test for test in TESTS if test in data)
    assert set(data) == {"text", "count", test} and data["count"] in METRICS, data
    return Goal(data["text"], data["count"], test, data[test])


def grade(puzzle: Puzzle, kernel: AnalyzedKernel) -> tuple[Grade, ...]:
    """The goals, each with whether ``kernel`` reaches it; first that it computes the same as the
    start."""
    start, schedule = _start(puzzle), kernel.emitted.schedule
    same = _computed(schedule) == _computed(start)
    grades = [Grade("the gemm, its types and its epilogue are the start's", same, "")]
    if not same:
        return tuple(grades)
    found = explained(schedule, puzzle.shape)
    for goal in puzzle.goals:
        value = METRICS[goal.count](found)
        grades.append(Grade(goal.text, _is_met(goal, value, puzzle), _words(value)))
    proof = round_trip.check(Subject(kernel.emitted))
    said = "" if proof.status == "passed" else proof.detail
    grades.append(Grade("C0: the text parses back", proof.status == "passed", said))
    return tuple(grades)


def _computed(schedule: Schedule) -> tuple[object, ...]:
    return schedule.gemm, schedule.dtypes, schedule.epilogue


@cache
def _start(puzzle: Puzzle) -> Schedule:
    return parse_schedule(Source(puzzle.start, f"{puzzle.name}.sched"))


def _of_start(puzzle: Puzzle) -> Explanation:
    return explained(_start(puzzle), puzzle.shape)


@lru_cache(maxsize=16)
def explained(schedule: Schedule, shape: str) -> Explanation:
    """The counts of a schedule at a shape as ``--shape`` takes it; those of the latest are kept.

    Raises ``UsageError`` for a shape that it does not take.
    """
    sizes = resolve(written_shape(shape), schedule.gemm, "shape")
    return explain(schedule, sizes, GPUS[DEFAULT], pads=False)


def _is_met(goal: Goal, value: Count, puzzle: Puzzle) -> bool:
    if goal.test == "equals":
        return value == goal.wanted
    assert not isinstance(value, str) and not isinstance(goal.wanted, str)
    if goal.test == "at_least":
        return value >= goal.wanted
    if goal.test == "at_most":
        return value <= goal.wanted
    before = METRICS[goal.count](_of_start(puzzle))
    assert not isinstance(before, str)
    return value <= goal.wanted * before


def _words(value: Count) -> str:
    if isinstance(value, str):
        return value
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"
