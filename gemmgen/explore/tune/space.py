"""A schedule with sets as a numbered list of points."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property

from gemmgen.base.errors import UsageError
from gemmgen.base.record import record
from gemmgen.base.source import Source
from gemmgen.language import open_schedule
from gemmgen.schedule.model import Gemm, Schedule
from gemmgen.schedule.parse import OpenSchedule

Value = int | str
Settings = tuple[tuple[str, Value], ...]
"""A point: a value for each set, by key, in the text's order."""

MOST = 1_000_000
"""The most points of a space; judging them takes minutes."""


@record
class SearchSpace:
    """The points of ``source``: each a value per set, the last set's varying fastest.

    ``given`` fixes some sets, as ``--set`` does.  ``target`` replaces the schedule's unless it is
    None.  Raises ``ScheduleError`` for a text with mistakes, ``UsageError`` for one with no set
    left or with too many points.
    """

    source: Source
    given: tuple[tuple[str, str], ...] = ()
    target: str | None = None

    def __post_init__(self) -> None:
        if not self._open.sets:
            hint = "tile m={64, 128} k={8, 16} would be a space of four points"
            raise UsageError(f"{self.source.name} has no set, so there is nothing to tune: {hint}")
        for key, value in self.given:
            self._check(key, value)
        if self.size > MOST:
            widest = max(self.sets, key=lambda key: len(self.sets[key]))
            raise UsageError(
                f"a space of {self.size:,} points is more than the {MOST:,} that are looked at: "
                f"take values out, or fix a set, as in --set {widest}={self.sets[widest][0]}"
            )

    @cached_property
    def _open(self) -> OpenSchedule:
        return open_schedule(self.source)

    @property
    def gemm(self) -> Gemm:
        """The ``gemm`` line, which no set changes."""
        return self._open.gemm

    @cached_property
    def sets(self) -> dict[str, tuple[Value, ...]]:
        """The sets that are not fixed, by key."""
        given = dict(self.given)
        found = {key: choice.values for key, choice in self._open.sets.items()}
        return {
            key: tuple(v for v in values if key not in given or str(v) == given[key])
            for key, values in found.items()
        }

    @property
    def open_keys(self) -> list[str]:
        """The keys of the sets that leave a choice."""
        return [key for key, values in self.sets.items() if len(values) > 1]

    @cached_property
    def size(self) -> int:
        return math.prod(len(values) for values in self.sets.values())

    def settings(self, number: int) -> Settings:
        """The point of this number, from 0."""
        assert 0 <= number < self.size
        found: list[tuple[str, Value]] = []
        for key, values in reversed(self.sets.items()):
            number, at = divmod(number, len(values))
            found.append((key, values[at]))
        return tuple(reversed(found))

    def number(self, settings: Settings) -> int | None:
        """The number of the point with these settings, or None."""
        wanted, found = dict(settings), 0
        if wanted.keys() != self.sets.keys():
            return None
        for key, values in self.sets.items():
            if wanted[key] not in values:
                return None
            found = found * len(values) + values.index(wanted[key])
        return found

    def schedule(self, number: int) -> Schedule:
        """The point's schedule; raises ``ScheduleError`` if its text is illegal."""
        found = self._open.fixed(self.settings(number))
        return replace(found, target=self.target) if self.target else found

    def _check(self, key: str, value: str) -> None:
        values = self._open.sets.get(key)
        if values is None:
            keys = ", ".join(self._open.sets)
            raise UsageError(f"--set {key}={value}: the sets of this file are {keys}")
        if value not in map(str, values.values):
            listed = ", ".join(map(str, values.values))
            raise UsageError(f"--set {key}={value}: the set has no such value; it has {listed}")
