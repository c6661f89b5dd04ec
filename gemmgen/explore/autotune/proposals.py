"""The order in which candidates are tried: the seeds, then neighbors of the fastest so far.

A best-first search: of the fastest candidates all neighbors are judged, and those with the least
expected time come next.  A neighbor's expected time is its parent's measured one, times the ratio
of their estimates.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence

from gemmgen.base.source import Source
from gemmgen.explore.autotune.first_candidates import SEARCH, Seed
from gemmgen.explore.autotune.judged_candidates import Judge, SearchProposal
from gemmgen.explore.autotune.neighbors import neighbors
from gemmgen.explore.request import Request
from gemmgen.language import parse_schedule

WIDTH = 4
"""The fastest candidates whose neighbors are tried before those of slower ones."""


class Proposals:
    """Proposes candidates for ``request``, each text once."""

    def __init__(self, request: Request, seeds: Sequence[Seed], judge: Judge):
        self._request, self._judge = request, judge
        self.proposed: dict[int, SearchProposal] = {}
        self._values: dict[int, float] = {}
        self._expanded: set[int] = set()
        self._seen = {seed.text for seed in seeds}
        self._queue: list[tuple[float, int, SearchProposal]] = []
        self._numbers = 0
        for seed in seeds:
            self._add(seed, -math.inf)

    @property
    def left(self) -> int:
        """Candidates that were judged and not proposed yet."""
        return len(self._queue)

    def ask(self, count: int) -> tuple[SearchProposal, ...]:
        """The next candidates, at most ``count``; none if there is nothing else to try."""
        while (parent := self._parent(len(self._queue) < count)) is not None:
            self._expand(parent)
        found = [heapq.heappop(self._queue)[2] for _ in range(min(count, len(self._queue)))]
        self.proposed |= {proposal.number: proposal for proposal in found}
        return tuple(found)

    def tell(self, number: int, value: float | None) -> None:
        """The logarithm of a candidate's time, relative to any unit; None for one that failed."""
        if value is not None:
            self._values[number] = value

    def _parent(self, short: bool) -> int | None:
        """The candidate whose neighbors come next: the best, and if candidates are ``short`` any,
        the fastest first."""
        order = heapq.nsmallest(
            WIDTH if self._queue else len(self._values),
            self._values,
            key=lambda number: (self._values[number], number),
        )
        fresh = [number for number in order if number not in self._expanded]
        if not fresh:
            return None
        return fresh[0] if short or fresh[0] == order[0] else None

    def _expand(self, number: int) -> None:
        self._expanded.add(number)
        parent = self.proposed[number]
        schedule = parse_schedule(Source(parent.text))
        several = [
            texts
            for texts in dict.fromkeys(neighbors(schedule, self._request))
            if not self._seen.issuperset(texts)
        ]
        for judged in self._judge(several):
            if judged is None or judged.text in self._seen:
                continue
            self._seen.add(judged.text)
            ratio = judged.seconds / parent.seconds
            expected = math.log(ratio) if 0 < ratio < math.inf else math.inf
            self._add(Seed(judged.text, SEARCH, judged.seconds), self._values[number] + expected)

    def _add(self, seed: Seed, expected: float) -> None:
        proposal = SearchProposal(self._numbers, seed.text, seed.origin, seed.seconds)
        heapq.heappush(self._queue, (expected, self._numbers, proposal))
        self._numbers += 1
