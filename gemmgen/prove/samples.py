"""Calls drawn at random: what does not hold in one of them need not be asked of the solver."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping

from gemmgen.base.errors import UsageError
from gemmgen.calling.dimensions import solve
from gemmgen.ir.interface import Interface

COUNT = 60
"""Calls that are drawn."""
LARGEST = (1, 40, 300, 3000)
"""Extents are at most one of these."""


def drawn(interface: Interface, given: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """Extents and leading dimensions that satisfy all requirements, with the extents ``given``."""
    dice = random.Random(0)
    for _ in range(COUNT):
        sizes = {name: dice.randint(1, dice.choice(LARGEST)) for name in interface.extent_names()}
        try:
            values = solve(interface, {**sizes, **given}, dice.randint(0, 5))
        except UsageError:
            continue
        if all(values[name] == value for name, value in given.items()):
            yield values
