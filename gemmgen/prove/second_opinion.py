"""A second opinion: what z3 says cannot hold is asked of another solver, cvc5, after the proof."""

from __future__ import annotations

import time
from dataclasses import field

from gemmgen.base.errors import GemmgenError
from gemmgen.base.record import record
from gemmgen.prove import second_solver

SECONDS = 10.0
"""The most for one query."""


class SolversDisagree(GemmgenError):
    """Two solvers give different answers; ``query`` is the text that both were given."""

    exit_code = 1

    def __init__(self, about: str, query: str):
        self.about, self.query = about, query
        super().__init__(
            f"z3 and cvc5 disagree on a query of {about}: z3 says unsat, cvc5 says sat. "
            "Nothing is proved: one of the solvers has a bug. The query is on standard output"
        )

    def __reduce__(self) -> tuple[type[SolversDisagree], tuple[str, str]]:
        """Makes it picklable: workers raise it."""
        return type(self), (self.about, self.query)


@record
class QueryLog:
    """The queries that z3 answered with ``unsat``, each once, with what they are about."""

    queries: dict[str, str] = field(default_factory=dict[str, str])

    def add(self, query: str, about: str) -> None:
        self.queries.setdefault(query, about)


@record
class SecondOpinion:
    """What the second solver says of a proof's queries: how many it ``confirmed``, and how many
    are ``unknown`` to it."""

    solver: str
    confirmed: int
    unknown: int
    seconds: float

    @property
    def queries(self) -> int:
        return self.confirmed + self.unknown

    def text(self) -> str:
        """``cvc5 confirms 812 of 815 queries; 3 unknown``."""
        name, _, _ = self.solver.partition(" ")
        of = f"{self.queries:,} {'query' if self.queries == 1 else 'queries'}"
        left = f"; {self.unknown:,} unknown" if self.unknown else ""
        return f"{name} confirms {self.confirmed:,} of {of}{left}"


def reviewed(log: QueryLog) -> SecondOpinion:
    """Asks cvc5 each query of ``log``.  Raises ``SolversDisagree`` at the first that it finds
    values for."""
    begin = time.perf_counter()
    unknown = 0
    for query, about in log.queries.items():
        found = second_solver.satisfiable(query, SECONDS)
        if found == "sat":
            raise SolversDisagree(about, query)
        unknown += found == "unknown"
    confirmed, spent = len(log.queries) - unknown, round(time.perf_counter() - begin, 3)
    return SecondOpinion(second_solver.version(), confirmed, unknown, spent)
