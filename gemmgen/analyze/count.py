"""Counts of a whole launch, exact at any shape, from a few blocks and a few steps of their loops.

Why a few are enough.  Addresses are sums of thread-dependent terms and the origins of the block's
tile and of the k tile; guards compare them with extents.

- Two blocks whose tiles lie inside C as a whole pass the same guards.  If the origins of their
  tiles are equal modulo 32 elements (64 where an element has 2 bytes), then in each matrix
  (row * ld + column) their addresses differ by a multiple of 128 bytes, for all threads alike: the
  same sectors and lines a request.  Shared addresses do not depend on the block.  So one block of
  each such class is walked and counts for all; a tile at a ragged edge is in a class of its own
  along that letter.  Of a tensor with batches the place where the block's matrix begins counts too,
  modulo as many elements.  Blocks that share a tile are of a class where their parts of k are as
  long and begin alike, and where they do the same behind their sums.
- The same holds for two trips of a loop that pass the same guards and lie a multiple of so many
  elements and of the number of shared stages apart: a *period*.  Guards are comparisons with a
  loop's variable, so each changes at most once; the first and the last trips are walked, and where
  the periods behind the first and before the last ones count alike, so do all between them.  Where
  they do not, every trip is walked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, replace
from hashlib import blake2b
from math import gcd, lcm

import numpy as np

from gemmgen.analyze import measure
from gemmgen.analyze.joined import Joiner, as_written, widest_of
from gemmgen.analyze.origins import origins_of
from gemmgen.analyze.recorder import record_accesses
from gemmgen.analyze.sites import Site
from gemmgen.analyze.trips import every_trip
from gemmgen.base.record import record
from gemmgen.interpreter.operators import Ints
from gemmgen.interpreter.simt import Index, Lanes, Mask
from gemmgen.ir.dtypes import BYTES
from gemmgen.ir.lowered import LoweredKernel

MOST_LANES = 16384
"""Threads that are walked side by side."""

FIELDS = 7
"""Of ``Counts``, those that add up."""


@record
class Counts:
    """What the accesses of a site come to in a launch.

    ``elements``: of all threads; those of asynchronous copies by whole pieces.  ``requests``:
    instructions of a warp with at least one thread in them.  ``sectors`` (32 bytes) and ``lines``
    (128 bytes) of global memory.  ``phases`` and ``wavefronts`` of shared memory: without bank
    conflicts they are equal; ``ways`` is the n of the worst n-way conflict, and ``clocks`` what an
    H200 takes for them (``measure.shared``).
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


Launch = dict[Site, Counts]
"""Of each site of the text; sites that are ``joined`` are in addition to them."""


def count_compiled(kernel: LoweredKernel, values: Mapping[str, int | float]) -> Launch:
    """The counts of each site, over all blocks, and those of reads that the compiler may join
    (``joined.Joiner``)."""
    return _total(kernel, values, classes_of(kernel, values), abridged=True)


def count_launch(kernel: LoweredKernel, values: Mapping[str, int | float]) -> Launch:
    """The counts of each site, over all blocks.  ``values`` are the kernel's integers and scalars;
    tensors begin at addresses that are multiples of 128 bytes, as allocations do."""
    return as_written(count_compiled(kernel, values))


def count_every_block(kernel: LoweredKernel, values: Mapping[str, int | float]) -> Launch:
    """The same with every block and every trip walked: what ``count_launch`` is tested against."""
    grid = kernel.interface.grid({n: int(values[n]) for n in kernel.interface.shaping()})
    every = np.arange(grid), np.ones(grid, np.int64)
    return as_written(_total(kernel, values, every, abridged=False))


def classes_of(kernel: LoweredKernel, values: Mapping[str, int | float]) -> tuple[Ints, Ints]:
    """One block of each class, and how many blocks it stands for."""
    found: dict[tuple[int, ...], tuple[int, int]] = {}
    period = period_of(kernel)
    for blocks, origins, matrices, ranges in origins_of(kernel, values):
        parts = [place % period for place in (*origins, *matrices)]
        for (name, size), origin in zip(kernel.interface.tiles, origins, strict=True):
            parts.append((origin + size <= int(values[name])).astype(np.int64))
        if ranges:
            start, stop = ranges
            parts += [start % period, np.maximum(stop - start, 0)]
            parts.append(_behind(kernel, values, blocks))
        for at, count in _alike(parts):
            key = tuple(int(part[at]) for part in parts)
            block, before = found.get(key, (int(blocks[at]), 0))
            found[key] = (block, before + count)
    pairs = np.array(list(found.values()), np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def _behind(kernel: LoweredKernel, values: Mapping[str, int | float], blocks: Ints) -> Ints:
    """What each block does behind its own sums, as a number: it follows from its part's number
    within a group, and the group's."""
    interface = kernel.interface
    part, size = blocks // _tiles(kernel, values), interface.parts // interface.groups
    is_last = part == interface.parts - 1
    return (part % size == size - 1) + 2 * is_last.astype(np.int64)


def _tiles(kernel: LoweredKernel, values: Mapping[str, int | float]) -> int:
    interface = kernel.interface
    return interface.tile_count({name: int(values[name]) for name in interface.shaping()})


def period_of(kernel: LoweredKernel) -> int:
    """Elements after which addresses of every matrix begin a line again, at the least 32."""
    sizes = (BYTES[p.dtype] for p in kernel.interface.params if p.kind == "tensor")
    return measure.LINE // min(measure.WORD, *sizes)


def _alike(parts: Sequence[Ints]) -> Iterator[tuple[int, int]]:
    """The place of the first of each kind of rows of ``parts``, and how many are of that kind."""
    kinds = np.zeros(parts[0].size, np.int64)
    for part in parts:
        _, kinds = np.unique(kinds * (part.max(initial=0) + 1) + part, return_inverse=True)
    _, first, counts = np.unique(kinds, return_index=True, return_counts=True)
    yield from zip(first.tolist(), counts.tolist(), strict=True)


def _total(
    kernel: LoweredKernel,
    values: Mapping[str, int | float],
    classes: tuple[Ints, Ints],
    *,
    abridged: bool,
) -> Launch:
    launch: Launch = {}
    for blocks, weights in _chunks(kernel, values, *classes):
        x, y = kernel.interface.block
        lanes = Lanes(0, len(blocks), x, y)
        tally = Tally(lanes, period_of(kernel), widest_of(kernel))
        trips = tally.trips if abridged else every_trip
        record_accesses(kernel, blocks, values, tally.see, trips, tally.barrier)
        for site, counts in tally.weighted(weights):
            launch[site] = launch.get(site, Counts()) + counts
    return launch


def _chunks(
    kernel: LoweredKernel, values: Mapping[str, int | float], blocks: Ints, weights: Ints
) -> Iterator[tuple[Ints, Ints]]:
    """Blocks that are walked side by side: their loops have the same bounds."""
    tiles = _tiles(kernel, values)
    at_once = max(1, MOST_LANES // kernel.threads)
    for part in np.unique(blocks // tiles):
        own = np.flatnonzero(blocks // tiles == part)
        for at in range(0, len(own), at_once):
            some = own[at : at + at_once]
            yield blocks[some], weights[some]


class Tally:
    """Adds up accesses, block by block; ``period`` as of ``period_of``, ``widest`` as of
    ``widest_of``."""

    def __init__(
        self,
        lanes: Lanes,
        period: int = measure.LINE // measure.WORD,
        widest: Mapping[str, int] | None = None,
    ):
        self.lanes, self.period = lanes, period
        self.joiner = Joiner(self.count, widest or {})
        self.totals: dict[Site, Ints] = {}
        """Per site: the fields of ``Counts``, by the blocks that are walked."""
        self.ways: dict[Site, int] = {}
        self._known: dict[tuple[bytes, int, int], tuple[Ints, int]] = {}

    def see(self, site: Site, index: Index, mask: Mask) -> None:
        first = first_elements(self.lanes, index, mask)
        self.count(site, first)
        if site.space == "shared" and not (site.write or site.fragment):
            self.joiner.add(site, first)

    def barrier(self) -> None:
        """Ends what reads may be joined with."""
        self.joiner.flush()

    def count(self, site: Site, first: Ints) -> None:
        """Adds an access of threads that begin at ``first``, by (warps, 32)."""
        if site.space == "global":
            sizes = (measure.SECTOR, measure.LINE)
            units = [measure.units(first, site.width, unit, site.size) for unit in sizes]
            by_block, ways = self._by_block(first, site.width, global_units=units), 0
        else:
            by_block, ways = self._shared(first, site.width, site.size)
            self.ways[site] = max(self.ways.get(site, 0), ways)
        if site in self.totals:
            self.totals[site] += by_block
        else:
            self.totals[site] = by_block.copy()

    def _shared(self, first: Ints, width: int, size: int) -> tuple[Ints, int]:
        """Measured once: a loop's trips come back to the same places."""
        key = blake2b(first.tobytes(), digest_size=16).digest(), width, size
        if key not in self._known:
            seen = measure.shared(first, width, size)
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
        """The fields of ``Counts``, by the blocks that are walked."""
        nothing = np.zeros(len(first), np.int64)
        units, parts = global_units or [nothing] * 2, shared_parts or [nothing] * 3
        found = [measure.elements(first, width), measure.requests(first), *units, *parts]
        return np.stack(found).reshape(FIELDS, self.lanes.blocks, -1).sum(axis=2)

    def trips(self, run: Callable[[int], None], count: int, step: int, stages: int) -> None:
        """Some trips of a loop, counted for all: see the module's argument."""
        period = lcm(self.period // gcd(step, self.period), stages)
        ends = 2 * period
        skipped = (count - 2 * ends) // period - 2
        if skipped < 1:
            every_trip(run, count, step, stages)
            return
        self._make(run, 0, ends)
        early = self._change(lambda: self._make(run, ends, ends + period))
        late = count - ends - (count - 2 * ends) % period - period
        assert (late - ends - period) == skipped * period
        before = self._copy()
        self._make(run, late, late + period)
        if _same(early, self._since(before)):
            for site, change in early.items():
                self.totals[site] += skipped * change
        else:
            self._make(run, ends + period, late)
        self._make(run, late + period, count)

    def weighted(self, weights: Ints) -> Iterator[tuple[Site, Counts]]:
        """The counts of each site, each block's taken as often as its weight says."""
        for site, total in self.totals.items():
            sums = [int(number) for number in total @ weights]
            yield site, Counts(*sums, ways=self.ways.get(site, 0))

    def _make(self, run: Callable[[int], None], first: int, stop: int) -> None:
        every_trip(lambda i: run(first + i), stop - first, 1, 1)
        self.barrier()

    def _change(self, action: Callable[[], None]) -> dict[Site, Ints]:
        before = self._copy()
        action()
        return self._since(before)

    def _copy(self) -> dict[Site, Ints]:
        return {site: total.copy() for site, total in self.totals.items()}

    def _since(self, before: dict[Site, Ints]) -> dict[Site, Ints]:
        return {s: total - before[s] if s in before else total for s, total in self.totals.items()}


def first_elements(lanes: Lanes, index: Index, mask: Mask) -> Ints:
    """The first element that each thread touches, -1 for none, by (warps, 32)."""
    every = index if isinstance(index, np.ndarray) else np.full(lanes.count, index)
    active = every if mask is None else np.where(mask, every, -1)
    return active.reshape(-1, measure.WARP)


def _same(one: dict[Site, Ints], other: dict[Site, Ints]) -> bool:
    return one.keys() == other.keys() and all(np.array_equal(one[s], other[s]) for s in one)
