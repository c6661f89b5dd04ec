"""The pairs of classes that no schedule has had."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from gemmgen.fuzz.factors import CLASSES, FACTORS, Class, Pair
from gemmgen.fuzz.head_classes import Plan

_VAIN = 10
"""Failed steps for a pair, after which it is given up."""
_BIT = {one: 1 << at for at, one in enumerate(CLASSES)}


def bits(classes: Iterable[Class]) -> int:
    """A set of classes as an integer."""
    return sum(map(_BIT.__getitem__, classes))


class Unseen:
    """All pairs at first; those of a class are the bits of an integer.  A class and itself are a
    pair, too."""

    def __init__(self, barred: Iterable[Class] = ()) -> None:
        """``barred``: classes whose pairs are left out."""
        every = {name: bits((name, label) for label in FACTORS[name]) for name in FACTORS}
        others = sum(every.values())
        self._unseen = {one: others - every[one[0]] + _BIT[one] for one in CLASSES}
        hoped = ~bits(barred)
        # without those that were given up
        self._hoped = {
            one: b & hoped if hoped & _BIT[one] else 0 for one, b in self._unseen.items()
        }
        self._failed: Counter[frozenset[Class]] = Counter()

    def __contains__(self, pair: Pair) -> bool:
        first, second = pair
        return bool(self._unseen[first] & _BIT[second])

    def new(self, one: Class, plan: int) -> int:
        """How many pairs a class would add to the ``bits`` of a plan."""
        return (self._hoped[one] & plan).bit_count()

    def see(self, plan: Plan) -> None:
        """Removes the pairs of a schedule's plan."""
        found = bits(plan.items())
        for one in plan.items():
            self._unseen[one] &= ~found
            self._hoped[one] &= ~found

    def fail(self, one: Class, plan: Plan) -> None:
        """Notes that a plan could not get a class; its pairs are given up after a few times."""
        for other in plan.items():
            if self._hoped[one] & _BIT[other]:
                pair = frozenset((one, other))
                self._failed[pair] += 1
                if self._failed[pair] == _VAIN:
                    self._hoped[one] -= _BIT[other]
                    self._hoped[other] -= _BIT[one]
