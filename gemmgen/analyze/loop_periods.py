"""Execute a few trips of a loop, and count them for all trips.

Two trips have equal counts if they pass the same guards, and are a multiple of 32 elements (64 if
an element has 2 bytes) and of the number of shared stages apart: a *period*.  Guards are
comparisons with a loop's variable, so each changes at most once.  The first and the last trips are
executed; if the periods after the first and before the last ones have equal counts, so have all
between them.  If not, every trip is executed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import gcd, lcm

import numpy as np

from gemmgen.analyze.access_counts import AccessCounter, Totals
from gemmgen.ir.control import Assign
from gemmgen.ir.expr import Binary, Expr, Int, Var
from gemmgen.ir.thread_code import Node

Trips = Callable[[Callable[[int], None], int, int, int], None]
"""How the trips of a loop are made: ``trips(run, count, step, stages)`` calls ``run(i)`` for those
of the numbers from 0 to ``count`` that it wants; ``stages`` is how often shared tiles come back."""


def every_trip(run: Callable[[int], None], count: int, step: int, stages: int) -> None:
    """All trips of a loop, one after another."""
    for i in range(count):
        run(i)


def periodic_trips(counter: AccessCounter, elements: int) -> Trips:
    """Some trips of each loop, which ``counter`` counts for all; addresses that are ``elements``
    apart have the same offset within a line."""

    def make(run: Callable[[int], None], first: int, stop: int) -> None:
        for i in range(first, stop):
            run(i)
        counter.flush()

    def trips(run: Callable[[int], None], count: int, step: int, stages: int) -> None:
        period = lcm(elements // gcd(step, elements), stages)
        ends = 2 * period
        skipped = (count - 2 * ends) // period - 2
        if skipped < 1:
            every_trip(run, count, step, stages)
            return
        make(run, 0, ends)
        early = counter.change(lambda: make(run, ends, ends + period))
        late = count - ends - (count - 2 * ends) % period - period
        assert (late - ends - period) == skipped * period
        if _same(early, counter.change(lambda: make(run, late, late + period))):
            counter.repeat(early, skipped)
        else:
            make(run, ends + period, late)
        make(run, late + period, count)

    return trips


def _same(one: Totals, other: Totals) -> bool:
    return one.keys() == other.keys() and all(np.array_equal(one[s], other[s]) for s in one)


def inductions(body: tuple[Node, ...]) -> Iterator[tuple[str, Expr]]:
    """The variables to which each trip of a loop adds the same, and what it adds: a trip that is
    not made would leave them at an earlier trip's value."""
    for node in body:
        match node:
            case Assign(str(name), Binary("+", Var(same), Int() | Var() as step)) if same == name:
                yield name, step
            case _:
                pass
