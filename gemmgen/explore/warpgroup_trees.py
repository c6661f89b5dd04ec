"""A correction of ``warpgroup_cost``'s estimates: boosted regression trees.

The cost model has no term for how blocks share L2's lines by their place on the GPU, how a store of
C is aligned with sectors, or how clusters are placed.  What it misses is learned from measurements:
the logarithm of the measured over the estimated time is the sum of the leaves that a plan reaches,
one per tree.  ``benchmarks/warpgroup_trees.py`` fits the trees by LightGBM to the times under
``docs/data`` (bf16, and e4m3 with i8, on an NVIDIA H200; 70 shapes of bf16 on an H100),
cross-validates them, and writes ``warpgroup_trees.json`` and ``warpgroup_trees_bytes.json``.

The features are ratios and sizes of the schedule and the shape, with no unit of time but the
estimate itself, so the correction is used for other GPUs with wgmma as well.
"""

from __future__ import annotations

import json
from functools import cache, cached_property
from math import ceil, exp, gcd, log, log2
from pathlib import Path
from typing import Any

from gemmgen.base.record import record
from gemmgen.explore.warpgroup_cost import BlockLaunch, WarpgroupSizes

FOLDER = Path(__file__).parent
FILES = {2: "warpgroup_trees.json", 1: "warpgroup_trees_bytes.json"}
"""By the bytes of an element of A and B."""
RESULTS = {2: (2,), 1: (2, 4)}
"""The bytes of the elements of C that were measured with these."""


Branch = tuple[int, float, "Branch | float", "Branch | float"]
"""A feature, its bound, and where a plan goes on: to the first if the feature is at most the bound,
else to the second, a branch or a leaf's value."""


@record
class Tree:
    """Nodes in order, the root first: a plan goes on to ``left`` if its ``feature`` is at most the
    ``bound``, else to ``right``; a leaf has ``left`` = -1 and its value in ``bound``."""

    feature: tuple[int, ...]
    bound: tuple[float, ...]
    left: tuple[int, ...]
    right: tuple[int, ...]

    @cached_property
    def root(self) -> Branch | float:
        """The tree as nested tuples, which are followed three times as fast."""
        made: list[Branch | float] = [*self.bound]
        for at in reversed(range(len(made))):  # children come after their parent
            if (left := self.left[at]) >= 0:
                made[at] = self.feature[at], self.bound[at], made[left], made[self.right[at]]
        return made[0]


@cache
def trees(item: int) -> tuple[Tree, ...]:
    """The trees that ship with the package for elements of ``item`` bytes."""
    data: dict[str, Any] = json.loads((FOLDER / FILES[item]).read_text(encoding="utf-8"))
    return tuple(Tree(*map(tuple, tree)) for tree in data["trees"])


@cache
def _roots(item: int) -> tuple[Branch | float, ...]:
    return tuple(tree.root for tree in trees(item))


def covers(sizes: WarpgroupSizes) -> bool:
    """Whether kernels of this kind were measured: operands of 16 or 8 bits, not split, and
    accumulators that are not promoted."""
    item, result = sizes.item
    return sizes.planes == 1 and not sizes.promoted and result in RESULTS.get(item, ())


def features(
    sizes: WarpgroupSizes,
    shape: tuple[int, ...],
    along: tuple[bool, bool],
    pitches: tuple[int, int, int],
    launch: BlockLaunch,
    us: float,
) -> tuple[float, ...]:
    """What the trees decide by; ``along``: whether A and B are contiguous along k, ``pitches``:
    bytes from a row of A, B and C to the next, ``us``: the estimate in microseconds.  Their order
    is that of the fitted trees."""
    m, n, k = shape[:3]
    (rows, columns), (along_m, along_n) = sizes.tile, sizes.cluster
    return (
        log(us),
        log(m),
        log(n),
        log(max(1, k)),
        rows,
        columns,
        sizes.atom_columns,
        sizes.consumers,
        sizes.producer + sizes.pingpong,
        along_m,
        along_n,
        sizes.stages,
        sizes.parts,
        sizes.persistent,
        sizes.narrow[0],
        sizes.narrow[1],
        sizes.odd,
        along[0],
        along[1],
        launch.waves,
        launch.blocks / launch.waves / WHOLE_WAVE,
        sizes.steps(k) * sizes.atom_columns,
        ceil(m / rows / along_m) * along_m * rows / m,
        ceil(n / columns / along_n) * along_n * columns / n,
        launch.readers[0],
        launch.readers[1],
        *(log2(gcd(pitch, LINE)) for pitch in pitches),
        along_m * along_n,
        launch.share,
        launch.blocks,
        sizes.item[1],
        sizes.swapped,
        sizes.slices,
        sizes.staged + sizes.plain,
    )


LINE = 128
"""Bytes of a line of L2: rows that begin within one touch more lines."""
WHOLE_WAVE = 132
"""Blocks by which those of a wave are divided."""


def correction(values: tuple[float, ...], item: int) -> float:
    """What to multiply an estimate with, by a plan's ``features``; ``item``: bytes of an element of
    A and B."""
    total = 0.0
    for node in _roots(item):
        while isinstance(node, tuple):
            feature, bound, left, right = node
            node = left if values[feature] <= bound else right
        total += node
    return exp(total)
