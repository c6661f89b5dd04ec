"""The ``index``-th random schedule of a seed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import cache

from gemmgen.base import caches
from gemmgen.fuzz.plans import Epoch
from gemmgen.fuzz.writing import Written
from gemmgen.proof import verdicts

EPOCH = 500
"""Consecutive schedules that depend on each other; one is reproduced from these alone."""
_STORED = 10
"""Schedules of an epoch that are cached together for the next process."""
_KEPT = "schedules.json"


def schedule_at(seed: int, index: int, without: Iterable[str] = ()) -> str:
    """The text of the ``index``-th random schedule of a seed, or of those that have none of the
    words in ``without``."""
    epoch, at = divmod(index, EPOCH)
    return _drawn(seed, epoch, frozenset(without)).text(at)


@cache
def _drawn(seed: int, epoch: int, without: frozenset[str]) -> _Drawn:
    return _Drawn(seed, epoch, without)


class _Drawn:
    """An epoch's texts as far as they are needed; drawing one takes a tenth of a second, so they
    are cached."""

    def __init__(self, seed: int, epoch: int, without: frozenset[str] = frozenset()):
        self._epoch = seed, epoch, without
        self._key = caches.key(verdicts.checker(), str(seed), str(epoch), *sorted(without))
        self._texts: list[str] = []
        self._more: Iterator[Written] | None = None
        while (kept := caches.read(self._name)) is not None:
            self._texts += map(str, json.loads(kept[_KEPT]))

    @property
    def _name(self) -> str:
        """The entry of the next ``_STORED`` texts."""
        return f"fuzz-{self._key}-{len(self._texts) // _STORED}"

    def text(self, at: int) -> str:
        if at >= len(self._texts) and self._more is None:
            self._texts, self._more = [], Epoch(*self._epoch).schedules()
        while self._more is not None and at >= len(self._texts):
            name = self._name
            self._texts.append(next(self._more).text)
            if len(self._texts) % _STORED == 0:
                texts = self._texts[-_STORED:]
                caches.write(name, {_KEPT: json.dumps(texts).encode()})
        return self._texts[at]
