"""The cost of an access of a warp: sectors and lines of global memory, phases of shared memory.

Each function takes the accesses of many warps at once: ``first``, the number of the first element
that each thread touches, -1 if it takes no part, as an array of (warps, 32); ``width``, the
neighbouring elements of each thread; and ``size``, the bytes of an element.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from gemmgen.base.record import record
from gemmgen.ir.target import WARP
from gemmgen.numerics.operators import Bools, Ints

SECTOR = 32
"""Bytes of a sector: what L2 and device memory deliver."""
LINE = 128
"""Bytes of a cache line: what L1 looks up at a time."""
BANKS = 32
"""Of shared memory, a word wide each."""
WORD = 4


def requests(first: Ints) -> Ints:
    """1 for each warp with an active thread: an instruction makes one request."""
    return cast(Ints, (first >= 0).any(axis=1).astype(np.int64))


def elements(first: Ints, width: int) -> Ints:
    """Elements that the threads of each warp touch, each thread's counted for itself."""
    return cast(Ints, (first >= 0).sum(axis=1) * width)


def units(first: Ints, width: int, unit: int, size: int = WORD) -> Ints:
    """Different units of ``unit`` bytes (``SECTOR``, ``LINE``) that each warp touches."""
    last = np.where(first >= 0, first + (width - 1), -1)
    both = first if width == 1 else np.concatenate((first, last), axis=1)
    numbers = np.sort(np.where(both >= 0, both * size // unit, -1), axis=1)
    return _distinct(numbers).sum(axis=1)


@record
class Phases:
    """For each warp: its phases, their wavefronts, the n of the worst n-way conflict, and
    clocks."""

    phases: Ints
    wavefronts: Ints
    ways: Ints
    clocks: Ints


def shared(first: Ints, width: int, size: int = WORD) -> Phases:
    """Bank conflicts by phase.

    An access of up to 4 bytes a thread is one phase of 32 threads, of 8 bytes two of 16, of 16
    bytes four of 8.  Threads that touch parts of one word touch one word.  In a phase each bank
    delivers one word a wavefront, to all threads that ask for it.  An NVIDIA H200 serves two
    neighbouring phases together (``clocks``) if threads share their addresses in pairs: each with
    the next one, or each with the second next.  Reads of 16 bytes at 0 0 0 0 1 1 1 1 ..
    take 2 clocks, of 0 1 2 3 0 1 2 3 .. 4 (measured).
    """
    warps, parts = len(first), words_of(width, size)
    words = np.where(first >= 0, first * size // WORD, -1)
    ways = _ways(words.reshape(warps * parts, WARP // parts), parts).reshape(warps, parts)
    together = fronts = ways.sum(axis=1)
    if parts > 1:
        merged = _ways(words.reshape(warps * parts // 2, WARP * 2 // parts), parts)
        fewer = np.minimum(ways.reshape(-1, 2).sum(axis=1), merged).reshape(warps, -1).sum(axis=1)
        together = cast(Ints, np.where(_in_pairs(words), fewer, fronts))
    return Phases((ways > 0).sum(axis=1), fronts, ways.max(axis=1, initial=0), together)


def _in_pairs(words: Ints) -> Bools:
    """Whether each thread of a warp shares its address with the next one, or the second next."""
    first, second = words.reshape(-1, WARP // 2, 2), words.reshape(-1, WARP // 4, 2, 2)
    next_one = (first[:, :, 0] == first[:, :, 1]).all(axis=1)
    second_next = (second[:, :, 0] == second[:, :, 1]).all(axis=(1, 2))
    return cast(Bools, next_one | second_next)


def words_of(width: int, size: int) -> int:
    """Words that a thread's access takes: as many phases does the warp's."""
    return max(1, width * size // WORD)


def _ways(first: Ints, width: int) -> Ints:
    """The most different words that a bank has to deliver to each group (row) of threads."""
    groups = len(first)
    each = first[:, :, None] + np.arange(width)
    words = np.where(first[:, :, None] >= 0, each, -1).reshape(groups, -1)
    words.sort(axis=1)
    new = _distinct(words)
    rows, _ = np.nonzero(new)
    cells = rows * BANKS + words[new] % BANKS
    full = np.bincount(cells, minlength=groups * BANKS).reshape(-1, BANKS)
    return cast(Ints, full.max(axis=1))


def _distinct(ordered: Ints) -> Bools:
    """Marks of the first of each different number in each sorted row, -1 left out."""
    marks = ordered >= 0
    marks[:, 1:] &= ordered[:, 1:] != ordered[:, :-1]
    return marks
