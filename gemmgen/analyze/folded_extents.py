"""Shorten the extents of C by whole periods, so that fewer blocks represent all.

Along a letter, tiles that lie inside C are of a class again after a period: the least common
multiple of a tile (of a cluster's) and of the elements after which addresses begin a line again
(``block_classes``).  So an extent is made shorter by whole periods.  Each tile of the first period
that is left counts for those of the others, too; tiles after it, that at the edge among them,
count once.  Matrices of a batch are of a class again after as many of them as a line has elements.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import lcm, prod

import numpy as np

from gemmgen.base.record import record
from gemmgen.ir.lowered import LoweredKernel
from gemmgen.numerics.operators import Ints

KEPT = 3
"""Periods that are left: neighbouring rows of a matrix stay as far apart as a block can see."""


@record
class ExtentFold:
    """``times`` periods of ``period`` steps, tiles or matrices are left out."""

    period: int
    times: int

    def weights(self, step: Ints) -> Ints:
        """The number of steps that each one represents."""
        return np.where(step < self.period, 1 + self.times, 1)


@record
class Folded:
    """``values`` of a launch with shorter extents, and what was left out along each tiled letter
    and each batch letter."""

    values: Mapping[str, int | float]
    tiles: tuple[ExtentFold, ...]
    batches: tuple[ExtentFold, ...]

    def weights(self, kernel: LoweredKernel, blocks: Ints, origins: tuple[Ints, ...]) -> Ints:
        """The number of the launch's blocks that each of these blocks represents."""
        found = np.ones(blocks.size, np.int64)
        sizes = (size for _, size in kernel.interface.tiles)
        for fold, origin, size in zip(self.tiles, origins, sizes, strict=True):
            found *= fold.weights(origin // size)
        names = [name for _, name in kernel.interface.batches]
        counts = [int(self.values[name]) for name in names]
        if not counts:
            return found
        tiles = kernel.interface.tile_count(_extents(kernel, self.values))
        matrix = blocks % tiles // (tiles // prod(counts))
        for fold, count in zip(reversed(self.batches), reversed(counts), strict=True):
            found *= fold.weights(matrix % count)
            matrix //= count
        return found


def unfolded(kernel: LoweredKernel, values: Mapping[str, int | float]) -> Folded:
    """No folding: each block represents itself."""
    interface, once = kernel.interface, ExtentFold(1, 0)
    return Folded(values, (once,) * len(interface.tiles), (once,) * len(interface.batches))


def folded(kernel: LoweredKernel, values: Mapping[str, int | float], line: int) -> Folded:
    """The same counts with as few blocks as ``line``, the elements of a line, allows."""
    interface = kernel.interface
    if any(int(values[name]) == 0 for name in interface.shaping()):
        return unfolded(kernel, values)
    summed = _summed(kernel)
    sides = interface.cluster or (1,) * len(interface.tiles)
    periods: dict[str, int] = {}
    for (name, size), side in zip(interface.tiles, sides, strict=True):
        periods[name] = lcm(periods.get(name, 1), size * side, line)
    for _, name in interface.batches:
        periods[name] = lcm(periods.get(name, 1), line)
    times = {
        name: 0 if name in summed else max(0, int(values[name]) // period - KEPT)
        for name, period in periods.items()
    }
    shorter = {name: int(values[name]) - times[name] * period for name, period in periods.items()}
    return Folded(
        {**values, **shorter},
        tuple(ExtentFold(periods[name] // size, times[name]) for name, size in interface.tiles),
        tuple(ExtentFold(periods[name], times[name]) for _, name in interface.batches),
    )


def _summed(kernel: LoweredKernel) -> set[str]:
    """The extent of the contracted letter: of the inputs' letters that which C lacks."""
    interface = kernel.interface
    output = {letter for p in interface.tensors if p.written for letter in p.indices}
    every = {letter for p in interface.tensors for letter in p.indices}
    return {interface.extent(letter) for letter in every - output}


def _extents(kernel: LoweredKernel, values: Mapping[str, int | float]) -> dict[str, int]:
    return {name: int(values[name]) for name in kernel.interface.shaping()}
