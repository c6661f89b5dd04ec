"""Short names for what these tests do all the time."""

from __future__ import annotations

from gemmgen.base.errors import ScheduleError
from gemmgen.base.source import Source
from gemmgen.ir.expr import Expr
from gemmgen.language import parse_schedule
from gemmgen.schedule.model import Schedule
from gemmgen.schedule.sets import Settings

SEVEN = """\
tile m=128 n=128 k=8
cache_shared A[k, m] B[k, n]
register_block m=8 n=8
vectorize A B C width=4
pad A by=4
double_buffer A B
fuse_epilogue relu(acc + bias[n])
"""
"""The seven words of the ladder that make a whole file."""


def schedule(text: str, settings: Settings = ()) -> Schedule:
    return parse_schedule(Source(text, "x.sched"), settings)


def epilogue(expression: str) -> Expr:
    found = schedule(f"fuse_epilogue {expression}").epilogue
    assert found is not None
    return found.expression


def refused(text: str, settings: Settings = ()) -> ScheduleError:
    """The error of a text that must not pass."""
    try:
        passed = schedule(text, settings)
    except ScheduleError as error:
        return error
    raise AssertionError(f"no mistake was found, and the schedule is {passed}")
