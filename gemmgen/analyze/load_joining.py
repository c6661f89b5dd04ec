"""Narrow reads of shared memory that the compiler merges into wide ones.

NVIDIA's compilers merge contiguous reads, ``A_shared[k][4 * t]`` to ``[4 * t + 3]``, into one
access of up to 16 bytes if their loops are unrolled, no barrier is between them and the address is
a multiple of the width for all threads.  Then phases and bank conflicts are those of the wide
access.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from math import prod
from typing import TypeVar

import numpy as np

from gemmgen.analyze.accesses import Site
from gemmgen.ir.control import For
from gemmgen.ir.dtypes import ACCESS
from gemmgen.ir.lowered import LoweredKernel
from gemmgen.ir.thread_code import Node, executes
from gemmgen.numerics.operators import Ints

T = TypeVar("T")
WIDTHS = (4, 2)
"""Elements of an access that reads are joined into, the widest first."""

Count = Callable[[Site, Ints], None]
"""Called for each read as compiled, with the first element of each thread, by (warps, 32)."""


class LoadJoiner:
    """Collects the reads between two barriers, and shows them to ``count`` as they are joined.

    ``widest``: per shared array the most elements that divide the distance of its stages; the
    compiler does not know which stage is read.
    """

    def __init__(self, count: Count, widest: Mapping[str, int]):
        self._count, self._widest = count, widest
        self._pending: dict[Site, list[Ints]] = {}

    def add(self, site: Site, first: Ints) -> None:
        """Add a read of the text; the widest possible reads are left out."""
        if site.width < self._most(site):
            self._pending.setdefault(site, []).append(first)

    def flush(self) -> None:
        """At a barrier: reads on both sides of it are not joined."""
        for site, reads in self._pending.items():
            for width, first in joined(reads, site.width, self._most(site)):
                self._count(replace(site, width=width, joined=site.width), first)
        self._pending.clear()

    def _most(self, site: Site) -> int:
        return min(self._widest.get(site.buffer, max(WIDTHS)), ACCESS // site.size)


def widest_of(kernel: LoweredKernel) -> dict[str, int]:
    """For each shared array the widest access that is aligned in every stage."""
    found: dict[str, int] = {}
    for array in kernel.shared:
        stages = array.sizes[0] if len(array.sizes) == 3 else 1
        distance = prod(array.sizes[-2:])
        fitting = (w for w in WIDTHS if stages == 1 or distance % w == 0)
        found[array.name] = next(fitting, 1)
    return found


def trips_joined(loop: For[Node]) -> int:
    """Trips of a loop whose reads the compiler sees at once; 0 for all.  A loop without a barrier
    that says nothing is unrolled by the compiler."""
    if loop.unroll is False:
        return int(executes(loop.body, "sync_block"))
    return 0 if loop.unroll is True else loop.unroll


def joined(reads: list[Ints], width: int, most: int) -> Iterator[tuple[int, Ints]]:
    """``reads`` of ``width`` elements in accesses of at most ``most``: widths, first elements."""
    for wide in WIDTHS:
        if width < wide <= most:
            done, reads = _joined(reads, width, wide)
            yield from ((wide, first) for first in done)
    yield from ((width, first) for first in reads)


def _joined(reads: list[Ints], width: int, wide: int) -> tuple[list[Ints], list[Ints]]:
    """The accesses of ``wide`` elements that are whole and aligned, and the reads left over."""
    groups: dict[bytes, dict[int, list[Ints]]] = {}
    left: list[Ints] = []
    for first in reads:
        offsets = np.unique(first[first >= 0] % wide)
        if len(offsets) == 1:
            base = np.where(first >= 0, first - offsets[0], -1)
            groups.setdefault(base.tobytes(), {}).setdefault(int(offsets[0]), []).append(first)
        else:
            left.append(first)
    done: list[Ints] = []
    for by_offset in groups.values():
        often = min(len(by_offset.get(offset, ())) for offset in range(0, wide, width))
        done += by_offset.get(0, [])[:often]
        left += [first for found in by_offset.values() for first in found[often:]]
    return done, left


def as_written(launch: dict[Site, T]) -> dict[Site, T]:
    """The sites of the text."""
    return {site: counts for site, counts in launch.items() if not site.joined}


def as_compiled(launch: dict[Site, T], widths: frozenset[int] | None) -> dict[Site, T]:
    """``launch`` with the joined reads of shared memory in place of those of the text.

    ``widths``: elements of the reads of shared memory in the compiled code; a site's reads are
    taken as joined if the code has every width that this makes.  None if nothing is
    compiled: then all are.
    """
    groups: dict[Site, dict[Site, T]] = {}
    for site, counts in launch.items():
        if site.joined:
            written = replace(site, width=site.joined, joined=0)
            groups.setdefault(written, {})[site] = counts
    found: dict[Site, T] = {}
    for site, counts in as_written(launch).items():
        group = groups.get(site, {})
        fits = widths is None or all(each.width in widths for each in group)
        found |= group if group and fits else {site: counts}
    return found
