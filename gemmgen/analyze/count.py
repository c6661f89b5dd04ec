"""Counts of a whole launch, exact at any shape, from a few blocks and a few trips of their loops.

``block_classes`` and ``loop_periods`` say why a few are enough.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from gemmgen.analyze.access_counts import AccessCounter, Counts, LaunchCounts
from gemmgen.analyze.block_classes import classes_of, period_of, tiles_of
from gemmgen.analyze.folded_extents import folded
from gemmgen.analyze.load_joining import as_written, widest_of
from gemmgen.analyze.loop_periods import every_trip, periodic_trips
from gemmgen.analyze.recorder import record_accesses
from gemmgen.interpreter.simt import Lanes
from gemmgen.ir.lowered import LoweredKernel
from gemmgen.numerics.operators import Ints

MOST_LANES = 16384
"""The number of threads that are interpreted side by side."""


def count_compiled(kernel: LoweredKernel, values: Mapping[str, int | float]) -> LaunchCounts:
    """The counts of each site, over all blocks, and those of reads that the compiler may join
    (``load_joining``)."""
    launch = folded(kernel, values, period_of(kernel))
    return _total(kernel, launch.values, classes_of(kernel, launch), abridged=True)


def count_launch(kernel: LoweredKernel, values: Mapping[str, int | float]) -> LaunchCounts:
    """The counts of each site, over all blocks.  ``values`` are the kernel's integers and scalars;
    tensors begin at addresses that are multiples of 128 bytes, as allocations do."""
    return as_written(count_compiled(kernel, values))


def count_every_block(kernel: LoweredKernel, values: Mapping[str, int | float]) -> LaunchCounts:
    """The same counts from every block and every trip, which ``count_launch`` is tested against."""
    grid = tiles_of(kernel, values) * kernel.interface.parts
    every = np.arange(grid), np.ones(grid, np.int64)
    return as_written(_total(kernel, values, every, abridged=False))


def _total(
    kernel: LoweredKernel,
    values: Mapping[str, int | float],
    classes: tuple[Ints, Ints],
    *,
    abridged: bool,
) -> LaunchCounts:
    launch: LaunchCounts = {}
    for blocks, weights in _chunks(kernel, values, *classes):
        counter = AccessCounter(Lanes(0, len(blocks), *kernel.interface.block), widest_of(kernel))
        trips = periodic_trips(counter, period_of(kernel)) if abridged else every_trip
        seen = counter.see, trips, counter.flush, counter.see_boxes
        record_accesses(kernel, blocks, values, *seen)
        for site, counts in counter.weighted(weights):
            launch[site] = launch.get(site, Counts()) + counts
    return launch


def _chunks(
    kernel: LoweredKernel, values: Mapping[str, int | float], blocks: Ints, weights: Ints
) -> Iterator[tuple[Ints, Ints]]:
    """Blocks that run side by side: their loops have the same bounds."""
    tiles = tiles_of(kernel, values)
    at_once = max(1, MOST_LANES // kernel.threads)
    for part in np.unique(blocks // tiles):
        own = np.flatnonzero(blocks // tiles == part)
        for at in range(0, len(own), at_once):
            some = own[at : at + at_once]
            yield blocks[some], weights[some]
