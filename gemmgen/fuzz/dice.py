"""Random choices that are the same on every machine and Python."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import TypeVar

T = TypeVar("T")


class Dice:
    """Uses ``random()`` only, whose sequence is the same in all versions of Python."""

    def __init__(self, *seed: int | str):
        self._random = random.Random(":".join(map(str, seed)))

    def below(self, count: int) -> int:
        return int(self._random.random() * count)

    def pick(self, items: Sequence[T]) -> T:
        return items[self.below(len(items))]

    def chance(self, share: float) -> bool:
        return self._random.random() < share

    def shuffled(self, items: Iterable[T]) -> list[T]:
        """The items in a random order."""
        rest, found, random = list(items), list[T](), self._random.random
        for count in range(len(rest), 0, -1):
            found.append(rest.pop(int(random() * count)))
        return found
