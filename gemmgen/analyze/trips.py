"""How often the body of a loop is walked."""

from __future__ import annotations

from collections.abc import Callable

Trips = Callable[[Callable[[int], None], int, int, int], None]
"""How the trips of a loop are made: ``trips(run, count, step, stages)`` calls ``run(i)`` for those
of the numbers from 0 to ``count`` that it wants; ``stages`` is how often shared tiles come back."""


def every_trip(run: Callable[[int], None], count: int, step: int, stages: int) -> None:
    """All trips of a loop, one after another."""
    for i in range(count):
        run(i)
