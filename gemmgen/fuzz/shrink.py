"""A failing schedule made small: directives dropped, values and shapes simplified."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace

from gemmgen.base.record import record
from gemmgen.base.source import Source
from gemmgen.calling.launches import Case
from gemmgen.fuzz.simpler import simpler
from gemmgen.fuzz.trial import Failure, again
from gemmgen.language import parse_schedule
from gemmgen.schedule.formatting import format_schedule

SECONDS = 60.0
"""The time limit of shrinking one failure."""


@record
class Small:
    """The smallest schedule found with the same failure, and that failure."""

    text: str
    failure: Failure
    tried: int


def shrink(text: str, failure: Failure, deadline: float = math.inf) -> Small:
    """The smallest schedule that fails like ``text``, found within ``SECONDS`` and before the
    ``deadline``."""
    return _Shrinking(text, failure, min(deadline, time.time() + SECONDS)).run()


class _Shrinking:
    def __init__(self, text: str, failure: Failure, deadline: float):
        self.best, self.failure, self.deadline = text, failure, deadline
        self.tried = 0

    def run(self) -> Small:
        self._accept(self._canonical(self.best))
        while self._schedule_shrinks():
            pass
        if self.failure.case is not None:
            while self._case_shrinks(self.failure.case):
                pass
        return Small(self.best, self.failure, self.tried)

    def _schedule_shrinks(self) -> bool:
        """One step to a smaller schedule; False if none has the same failure."""
        try:
            schedule = parse_schedule(Source(self.best))
        except Exception:
            return False
        return any(self._accept(format_schedule(less)) for less in simpler(schedule))

    def _canonical(self, text: str) -> str:
        try:
            return format_schedule(parse_schedule(Source(text)))
        except Exception:
            return text

    def _accept(self, text: str) -> bool:
        if self._is_late():
            return False
        found = self._fails(text, _cases(self.failure.case))
        if found is None:
            return False
        self.best, self.failure = text, found
        return True

    def _case_shrinks(self, case: Case) -> bool:
        for less in _simpler_cases(case):
            if self._is_late():
                return False
            found = self._fails(self.best, (less,))
            if found is not None and found.case is not None and found.case != case:
                self.failure = found
                return True
        return False

    def _fails(self, text: str, cases: tuple[Case, ...]) -> Failure | None:
        self.tried += 1
        found = again(text, self.failure, cases, self.deadline)
        same_kind = found and (found.layer, found.kind) == (self.failure.layer, self.failure.kind)
        return found if same_kind else None

    def _is_late(self) -> bool:
        return time.time() > self.deadline


def _cases(case: Case | None) -> tuple[Case, ...]:
    """The failing call, and smaller ones that a smaller schedule may fail at."""
    if case is None:
        return ()
    m, n, k, *batches = case.shape
    shapes = ((m, n, k), (max(m // 2, 1), max(n // 2, 1), k), (m, n, max(k // 2, min(k, 1))))
    return tuple(replace(case, shape=(*shape, *batches)) for shape in shapes)


def _simpler_cases(case: Case) -> Iterator[Case]:
    """Calls that are smaller in one respect each."""
    if case.data != "integers":
        yield replace(case, data="integers")
    if case.order != "ascending":
        yield replace(case, order="ascending")
    if case.alpha != 1.0 or case.beta != 0.0:
        yield replace(case, alpha=1.0, beta=0.0)
    if case.skips_product:
        yield replace(case, skips_product=False)
    if case.pad:
        yield replace(case, pad=0)
    if case.layout != "consecutive":
        yield replace(case, layout="consecutive")
    for at, size in enumerate(case.shape):
        for less in _less(size, (0, 1, 2, 3, size // 2, size - 4, size - 1)):
            if less or at == 2:
                yield replace(case, shape=(*case.shape[:at], less, *case.shape[at + 1 :]))


def _less(size: int, wanted: Iterable[int]) -> Iterator[int]:
    return (less for less in dict.fromkeys(wanted) if 0 <= less < size)
