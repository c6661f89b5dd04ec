"""Classes of blocks with the same accesses: one of each class is run, and counts for all of them.

Two blocks whose tiles lie inside C as a whole pass the same guards.  If the origins of their tiles
are equal modulo 32 elements (64 where an element has 2 bytes), then in each matrix (row * ld +
column) their addresses differ by a multiple of 128 bytes, the same one for all threads, and their
requests have the same number of sectors and lines.  Shared addresses do not depend on the block.  A
tile at a ragged edge is in its own class along that letter.  Of a tensor with batches the
offset of the block's matrix counts too, modulo as many elements.  Blocks that split the K of a tile
are of a class if their parts of k have the same length and alignment, and if they do the same after
their accumulators.  Blocks of a cluster copy shares of tiles that follow from their ranks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from gemmgen.analyze import transactions
from gemmgen.analyze.folded_extents import Folded
from gemmgen.analyze.tile_origins import origins_of
from gemmgen.ir.dtypes import BYTES
from gemmgen.ir.lowered import LoweredKernel
from gemmgen.numerics.operators import Ints

MOST_KINDS = 1 << 62
"""The most classes: their numbers fit an array element."""


def classes_of(kernel: LoweredKernel, launch: Folded) -> tuple[Ints, Ints]:
    """One block of each class of a launch, and how many blocks it counts for."""
    values = launch.values
    found: dict[tuple[int, ...], tuple[int, int]] = {}
    period = period_of(kernel)
    for blocks, origins, matrices, ranges in origins_of(kernel, values):
        parts = [first % period for first in (*origins, *matrices)]
        for (name, size), origin in zip(kernel.interface.tiles, origins, strict=True):
            parts.append((origin + size <= int(values[name])).astype(np.int64))
        if kernel.interface.cluster:
            parts.append(blocks % kernel.interface.cluster_blocks)
        if ranges:
            start, stop = ranges
            parts += [start % period, np.maximum(stop - start, 0)]
            parts.append(_role(kernel, values, blocks))
        for at, count in _alike(parts, launch.weights(kernel, blocks, origins)):
            key = tuple(int(part[at]) for part in parts)
            block, before = found.get(key, (int(blocks[at]), 0))
            found[key] = (block, before + count)
    pairs = np.array(list(found.values()), np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def tiles_of(kernel: LoweredKernel, values: Mapping[str, int | float]) -> int:
    """The number of tiles of C in all batches; blocks whose indices differ by a multiple of it
    share a tile."""
    interface = kernel.interface
    return interface.tile_count({name: int(values[name]) for name in interface.shaping()})


def period_of(kernel: LoweredKernel) -> int:
    """The number of elements, at least 32, after which the addresses of every matrix are again at
    the start of a cache line."""
    sizes = (BYTES[p.dtype] for p in kernel.interface.tensors)
    return transactions.LINE // min(transactions.WORD, *sizes)


def _role(kernel: LoweredKernel, values: Mapping[str, int | float], blocks: Ints) -> Ints:
    """A number for what each block does after its main loop: it follows from the index of its part
    within its group, and of the group."""
    interface = kernel.interface
    part, size = blocks // tiles_of(kernel, values), interface.parts // interface.groups
    is_last = part == interface.parts - 1
    return (part % size == size - 1) + 2 * is_last.astype(np.int64)


def _alike(parts: Sequence[Ints], weights: Ints) -> Iterator[tuple[int, int]]:
    """The index of the first of each kind of rows of ``parts``, and the sum of their weights."""
    kinds, count = np.zeros(parts[0].size, np.int64), 1
    for part in parts:
        size = int(part.max(initial=0)) + 1
        if count * size > MOST_KINDS:
            kinds = np.unique(kinds, return_inverse=True)[1]
            count = int(kinds.max(initial=0)) + 1
        kinds, count = kinds * size + part, count * size
    _, first, kind = np.unique(kinds, return_index=True, return_inverse=True)
    counts = np.zeros(first.size, np.int64)
    np.add.at(counts, kind, weights)
    yield from zip(first.tolist(), counts.tolist(), strict=True)
