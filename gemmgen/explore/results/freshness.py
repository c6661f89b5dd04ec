"""Whether gemmgen still emits what was measured: the freshness of a stored result."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from gemmgen.base.errors import ScheduleError
from gemmgen.base.source import Source
from gemmgen.explore.results.canonical_names import CanonicalNames, renamed
from gemmgen.explore.results.code_hash import code_hash
from gemmgen.explore.results.measured_result import MeasuredResult
from gemmgen.language import parse_schedule
from gemmgen.pipeline import Emitted, compile_schedule
from gemmgen.schedule.model import Schedule


def current(result: MeasuredResult, problem: Schedule) -> Emitted | None:
    """The kernel of a result's schedule with the names of ``problem``; None if it is stale."""
    names = CanonicalNames.of(problem)
    if stale(result):
        return None
    schedule = renamed(_schedule(result.schedule), names.reversed())
    own = replace(schedule, kernel=problem.kernel, same_bits=problem.same_bits)
    found = _compiled(result.schedule)
    if isinstance(found, Emitted) and own == found.schedule:
        return found
    try:
        return compile_schedule(own)
    except ScheduleError:  # a name that is taken in this schedule
        return None


def stale(result: MeasuredResult) -> str:
    """Why the result says nothing of today's kernel; empty if it is current."""
    found = _compiled(result.schedule)
    if isinstance(found, str):
        return f"this version refuses its schedule: {found}"
    if code_hash(found.text) != result.code:
        return "this version emits another text for its schedule"
    return ""


@lru_cache(64)
def _compiled(text: str) -> Emitted | str:
    """The kernel of a canonical text, or why there is none."""
    try:
        return compile_schedule(_schedule(text))
    except ScheduleError as refused:
        return refused.message


def _schedule(text: str) -> Schedule:
    return parse_schedule(Source(text))
