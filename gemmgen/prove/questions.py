"""The questions of a proof to the solver: until when they may be asked, and which are kept."""

from __future__ import annotations

import time
from collections.abc import Sequence

from gemmgen.base.units import numeral
from gemmgen.prove import solver
from gemmgen.prove.second_opinion import QueryLog
from gemmgen.prove.solver import Answer, Term

WALK = "the walk, which all facts depend on"
"""What a question is about that no fact asks."""


class OutOfTime(Exception):
    """A proof takes longer than it may."""


class Questions:
    """At most for ``seconds`` from now on.  ``log`` gets the queries that cannot hold, with what
    they are ``about``."""

    def __init__(self, seconds: float | None = None, log: QueryLog | None = None):
        self.seconds, self.log, self.about = seconds, log, WALK
        self._begin = time.perf_counter()

    def satisfiable(self, terms: Sequence[Term], seconds: float) -> Answer:
        """Whether all ``terms`` can hold at once.  Raises ``OutOfTime``."""
        answer = solver.satisfiable(terms, min(seconds, self.left()))
        if self.log is not None and answer.status == "unsat":
            self.log.add(solver.smtlib(terms), self.about)
        return answer

    def left(self) -> float:
        """The seconds that are left.  Raises ``OutOfTime`` if there are none."""
        if self.seconds is None:
            return float("inf")
        left = self._begin + self.seconds - time.perf_counter()
        if left <= 0:
            raise OutOfTime(f"not proved in {numeral(self.seconds)} seconds")
        return left
