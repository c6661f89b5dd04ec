"""Count the memory accesses of some blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, replace
from hashlib import blake2b

import numpy as np

from gemmgen.analyze import transactions
from gemmgen.analyze.accesses import Rows, Site, first_elements
from gemmgen.analyze.load_joining import LoadJoiner
from gemmgen.base.record import record
from gemmgen.interpreter.simt import Index, Lanes, Mask
from gemmgen.numerics.operators import Ints

FIELDS = 7
"""The fields of ``Counts`` that are added over accesses."""


@record
class Counts:
    """The accesses of a site in a launch. ``elements``: of all threads; asynchronous copies count
    whole vectors. ``requests``: warp instructions with at least one active thread. ``sectors`` (32
    bytes) and ``lines`` (128 bytes) of global memory. ``phases`` and ``wavefronts`` of shared
    memory: equal without bank conflicts; ``ways`` is the n of the worst n-way conflict, and
    ``clocks`` what an H200 takes for them (``transactions.shared``).
    """

    elements: int = 0
    requests: int = 0
    sectors: int = 0
    lines: int = 0
    phases: int = 0
    wavefronts: int = 0
    clocks: int = 0
    ways: int = 0

    def __add__(self, other: Counts) -> Counts:
        sums = (a + b for a, b in zip(astuple(self), astuple(other), strict=True))
        return replace(Counts(*sums), ways=max(self.ways, other.ways))

    @property
    def conflicts(self) -> int:
        """Wavefronts that bank conflicts add."""
        return self.wavefronts - self.phases

    @property
    def sectors_per_request(self) -> float:
        return self.sectors / self.requests if self.requests else 0.0

    @property
    def wavefronts_per_request(self) -> float:
        return self.wavefronts / self.requests if self.requests else 0.0


LaunchCounts = dict[Site, Counts]
"""The counts by site of the text; those of ``joined`` sites are additional."""

Totals = dict[Site, Ints]
"""By site: the fields of ``Counts``, per block."""


class AccessCounter:
    """Adds up accesses, block by block; ``widest`` as of ``load_joining.widest_of``."""

    def __init__(self, lanes: Lanes, widest: Mapping[str, int] | None = None):
        self.lanes = lanes
        self.joiner = LoadJoiner(self.count, widest or {})
        self.totals: Totals = {}
        self.ways: dict[Site, int] = {}
        self._known: dict[tuple[bytes, int, int], tuple[Ints, int]] = {}

    def see(self, site: Site, index: Index, mask: Mask) -> None:
        first = first_elements(self.lanes, index, mask)
        self.count(site, first)
        if site.space == "shared" and not (site.write or site.fragment):
            self.joiner.add(site, first)

    def see_boxes(self, site: Site, rows: Rows) -> None:
        """Add what TMA moves: no request, no L1 line and no bank conflict."""
        some = rows.length > 0
        blocks, first, length = rows.blocks[some], rows.first[some], rows.length[some]
        sectors = phases = np.zeros_like(first)
        if site.space == "global":
            unit = transactions.SECTOR
            sectors = (first + length) * site.size - 1
            sectors = sectors // unit - first * site.size // unit + 1
        else:
            phases = -(-length * site.size // transactions.LINE)
        nothing = np.zeros_like(first)
        found = [length, nothing, sectors, nothing, phases, phases, phases]
        by_block = np.zeros((FIELDS, self.lanes.blocks), np.int64)
        for field, values in zip(by_block, found, strict=True):
            np.add.at(field, blocks, values)
        self._add(site, by_block)

    def _add(self, site: Site, by_block: Ints) -> None:
        if site in self.totals:
            self.totals[site] += by_block
        else:
            self.totals[site] = by_block.copy()

    def flush(self) -> None:
        """End the group of reads that the compiler may join."""
        self.joiner.flush()

    def count(self, site: Site, first: Ints) -> None:
        """Add an access; ``first``: each thread's first element, an array of (warps, 32)."""
        if site.space == "global":
            sizes = (transactions.SECTOR, transactions.LINE)
            units = [transactions.units(first, site.width, unit, site.size) for unit in sizes]
            by_block, ways = self._by_block(first, site.width, global_units=units), 0
        else:
            by_block, ways = self._shared(first, site.width, site.size)
            self.ways[site] = max(self.ways.get(site, 0), ways)
        self._add(site, by_block)

    def _shared(self, first: Ints, width: int, size: int) -> tuple[Ints, int]:
        """Cached: the trips of a loop repeat addresses."""
        key = blake2b(first.tobytes(), digest_size=16).digest(), width, size
        if key not in self._known:
            seen = transactions.shared(first, width, size)
            parts = [seen.phases, seen.wavefronts, seen.clocks]
            by_block = self._by_block(first, width, shared_parts=parts)
            self._known[key] = by_block, int(seen.ways.max(initial=0))
        return self._known[key]

    def _by_block(
        self,
        first: Ints,
        width: int,
        *,
        global_units: Sequence[Ints] = (),
        shared_parts: Sequence[Ints] = (),
    ) -> Ints:
        """The fields of ``Counts``, by blocks."""
        nothing = np.zeros(len(first), np.int64)
        units, parts = global_units or [nothing] * 2, shared_parts or [nothing] * 3
        elements, requests = transactions.elements(first, width), transactions.requests(first)
        found = [elements, requests, *units, *parts]
        return np.stack(found).reshape(FIELDS, self.lanes.blocks, -1).sum(axis=2)

    def change(self, action: Callable[[], None]) -> Totals:
        """The counts that ``action`` adds."""
        before = {site: total.copy() for site, total in self.totals.items()}
        action()
        return {s: total - before[s] if s in before else total for s, total in self.totals.items()}

    def repeat(self, change: Totals, times: int) -> None:
        """Add ``change`` this many more times."""
        for site, counts in change.items():
            self.totals[site] += times * counts

    def weighted(self, weights: Ints) -> Iterator[tuple[Site, Counts]]:
        """The counts of each site, with each block's counts multiplied by its weight."""
        for site, total in self.totals.items():
            # Python's integers: a launch may have more than 2^63 accesses.
            sums = [int(number) for number in total.astype(object) @ weights.astype(object)]
            yield site, Counts(*sums, ways=self.ways.get(site, 0))
