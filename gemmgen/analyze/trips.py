"""How often the body of a loop is walked, and what that leaves out."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from gemmgen.ir.control import Assign
from gemmgen.ir.expr import Binary, Expr, Int, Var
from gemmgen.ir.lowered import Node

Trips = Callable[[Callable[[int], None], int, int, int], None]
"""How the trips of a loop are made: ``trips(run, count, step, stages)`` calls ``run(i)`` for those
of the numbers from 0 to ``count`` that it wants; ``stages`` is how often shared tiles come back."""


def every_trip(run: Callable[[int], None], count: int, step: int, stages: int) -> None:
    """All trips of a loop, one after another."""
    for i in range(count):
        run(i)


def inductions(body: tuple[Node, ...]) -> Iterator[tuple[str, Expr]]:
    """The variables to which each trip of a loop adds the same, and what it adds: a trip that is
    not made would leave them behind the loop's own variable."""
    for node in body:
        match node:
            case Assign(str(name), Binary("+", Var(same), Int() | Var() as step)) if same == name:
                yield name, step
            case _:
                pass
