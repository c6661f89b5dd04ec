"""Reads and formats ``.sched`` files: the schedule language with the directives of the ladder.

``schedule`` has the forms of statements, ``passes`` the arguments of each directive; this module
binds them.
"""

from __future__ import annotations

from functools import lru_cache

from gemmgen.base.source import Source
from gemmgen.passes.fuse_epilogue import FuseEpilogue
from gemmgen.passes.ladder import LADDER
from gemmgen.schedule import fmt, parse
from gemmgen.schedule.model import Choice, Schedule
from gemmgen.schedule.sets import Settings
from gemmgen.schedule.vocabulary import Vocabulary

VOCABULARY = Vocabulary(tuple(rung.SPEC for rung in LADDER), FuseEpilogue.SPEC)

_KEPT = 128
"""Schedules that a process keeps."""


def parse_schedule(source: Source, settings: Settings = ()) -> Schedule:
    """The canonical schedule of ``source``, its sets fixed by ``settings`` (``tile.m``, 128).

    Raises ``ScheduleError`` with every mistake of the text.
    """
    return _parsed(source, settings)


@lru_cache(_KEPT)
def _parsed(source: Source, settings: Settings) -> Schedule:
    return parse.parse(source, VOCABULARY, settings)


def open_schedule(source: Source) -> parse.OpenSchedule:
    """A schedule's text parsed once, whose sets a search fixes many times.

    Raises ``ScheduleError`` if the text has mistakes other than open sets.
    """
    return parse.OpenSchedule(source, VOCABULARY)


def choices(source: Source) -> dict[str, Choice]:
    """The sets of a schedule by key (``tile.m``); see ``open_schedule``."""
    return open_schedule(source).sets


def fmt_source(source: Source) -> str:
    """The text in the order of the passes, one statement a line, aligned; see ``schedule.fmt``.

    Raises ``ScheduleError`` if a statement can't be read.
    """
    return fmt.fmt(source, VOCABULARY)
