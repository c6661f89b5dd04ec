"""A model of the bank conflicts of a shared tile, and the swizzles that may avoid them.

It repeats lowering's rules in integers: ``lower/thread_map.py`` distributes a copy piece by piece,
the spread determines which thread reads which element.  ``explain`` counts the same in the lowered
code, and tests compare the two.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import product
from math import inf
from operator import itemgetter
from typing import TypeVar

from gemmgen.base.record import record
from gemmgen.ir.atoms import ATOMS, Loads
from gemmgen.ir.buffers import Buffer, Spread, Swizzle
from gemmgen.ir.copy_threads import is_narrow, threads_along
from gemmgen.ir.dtypes import BYTES
from gemmgen.ir.edit import contraction, copies, wide_access
from gemmgen.ir.lane_matrices import ROWS, row_of
from gemmgen.ir.nodes import Copy, Kernel
from gemmgen.ir.target import WARP

BANKS, BANK_BYTES = 32, 4
"""Rows that ldmatrix reads at once, and bytes of each."""
MOST_WARPS = 4
"""Warps in the model: the others access the same banks."""

T = TypeVar("T")
Position = tuple[int, int]
"""A row and a column of the tile."""


@record
class Phase:
    """Threads served together: the positions where their accesses begin, ``width`` elements of
    ``size`` bytes each, and how often such a phase occurs in a step."""

    positions: tuple[Position, ...]
    width: int
    size: int
    times: int


def phases(kernel: Kernel, tile: Buffer, *, asynchronous: bool = False) -> tuple[Phase, ...]:
    """All phases of a step's stores to and reads from ``tile``, in some of the block's warps;
    ``asynchronous``: a later pass makes the copies asynchronous."""
    found: list[Phase] = []
    for own in _warps(kernel.copying_threads):
        for copy in copies(kernel):
            if copy.dst == tile.name:
                by_hardware = asynchronous or copy.mode == "cp_async"
                found += _stores(kernel, copy, tile, own, by_hardware)
    for own in _warps(kernel.spread.threads):
        found += _reads(kernel, tile, own)
    return tuple(found)


def _warps(threads: int) -> Iterator[range]:
    """Some of the warps of this many threads, first to last."""
    count = max(1, threads // WARP)
    for warp in sorted({at * (count - 1) // (MOST_WARPS - 1) for at in range(MOST_WARPS)}):
        yield range(warp * WARP, min((warp + 1) * WARP, threads))


def _stores(
    kernel: Kernel, copy: Copy, tile: Buffer, threads: range, asynchronous: bool
) -> Iterator[Phase]:
    """The stores: adjacent threads have adjacent pieces, in the order of global memory."""
    size = BYTES[tile.dtype]
    outer, inner = kernel.buffer(copy.src).letters
    per_row = tile.extent(inner) // copy.width
    rows, step = tile.extent(outer), kernel.copying_threads
    straight = tile.letters[-1] == inner
    narrow = asynchronous and is_narrow(copy.width, tile.dtype)
    along = threads_along(rows, per_row, step, straight=straight, narrow=narrow)
    for first, turn in product(range(0, rows * along, step), range(per_row // along)):
        pieces = [first + thread for thread in threads if first + thread < rows * along]
        starts = [(p // along, (p % along + turn * along) * copy.width) for p in pieces]
        if straight:
            yield from _phases(starts, copy.width, size, 1)
            continue
        for e in range(copy.width):
            yield from _phases([(column + e, row) for row, column in starts], 1, size, 1)


def _reads(kernel: Kernel, tile: Buffer, threads: range) -> Iterator[Phase]:
    """The reads of fragments, or of operands where they are used: the same for each step of k."""
    copy = next((c for c in copies(kernel) if c.src == tile.name), None)
    direct = tile.name in (contraction(kernel).a, contraction(kernel).b)
    if copy is None and not direct:
        return
    width = copy.width if copy else 1
    (letter,) = (x for x in tile.letters if x in dict(kernel.work.tile))
    (k,) = (x for x in tile.letters if x != letter)
    atom = ATOMS[kernel.spread.atom]
    if atom.holding == "known":
        yield from _LOADS[atom.loads](kernel, tile, letter, threads)
        return
    axis, spread = kernel.spread.axis(letter), kernel.spread
    for register in range(0, axis.registers, width):
        piece, e = divmod(register, axis.width)
        starts: list[Position] = []
        for thread in threads:
            warp, lane = _position(spread, letter, thread)
            at = ((warp * axis.pieces + piece) * axis.lanes + lane) * axis.width + e
            starts.append((0, at) if tile.letters[-1] == letter else (at, 0))
        yield from _phases(starts, width, BYTES[tile.dtype], tile.extent(k))


def _rows_of_matrices(kernel: Kernel, tile: Buffer, letter: str, threads: range) -> Iterator[Phase]:
    """The reads by ldmatrix: eight rows of a matrix at once, 16 bytes of each."""
    spread, size = kernel.spread, BYTES[tile.dtype]
    axis, width = spread.axis(letter), row_of(tile.dtype)
    warp, _ = _position(spread, letter, threads[0])
    of_warp = axis.extent // axis.warps
    (k,) = (x for x in tile.letters if x != letter)
    mn_major = tile.letters[-1] == letter
    first, across = warp * of_warp, (of_warp, tile.extent(k))
    for row, column in product(
        range(0, across[mn_major], ROWS), range(0, across[not mn_major], width)
    ):
        at = (row, first + column) if mn_major else (first + row, column)
        yield Phase(tuple((at[0] + r, at[1]) for r in range(ROWS)), width, size, 1)


def _elements_of_lanes(
    kernel: Kernel, tile: Buffer, letter: str, threads: range
) -> Iterator[Phase]:
    """The reads of single elements: a lane's first ones, as often as it has others."""
    axis, (k,) = kernel.spread.axis(letter), (x for x in tile.letters if x != letter)
    warp, _ = _position(kernel.spread, letter, threads[0])
    atom, of_warp = ATOMS[kernel.spread.atom], axis.extent // axis.warps
    is_a = letter == kernel.spread.axes[0].letter
    layout = atom.a if is_a else atom.b
    assert layout is not None
    places = [layout.element(lane, 0) for lane in range(len(threads))]
    pairs = (place if is_a else place[::-1] for place in places)
    starts = [(warp * of_warp + along, step) for along, step in pairs]
    if tile.letters[-1] == letter:
        starts = [(step, along) for along, step in starts]
    others = of_warp * tile.extent(k) // layout.lanes
    yield from _phases(starts, 1, BYTES[tile.dtype], others)


_LOADS: dict[Loads, Callable[[Kernel, Buffer, str, range], Iterator[Phase]]] = {
    "rows": _rows_of_matrices,
    "elements": _elements_of_lanes,
    "parts": _rows_of_matrices,
}
"""The reads of an operand that lanes hold, by how they load it."""


def _position(spread: Spread, letter: str, thread: int) -> Position:
    """The warp and the lane of a thread along ``letter``; both go along x first."""
    x = spread.axis(spread.x)
    (y,) = (a for a in spread.axes if a.letter != spread.x)
    warp, lane = divmod(thread, x.lanes * y.lanes)
    if letter == spread.x:
        return warp % x.warps, lane % x.lanes
    return warp // x.warps, lane // x.lanes


def _phases(starts: list[Position], width: int, size: int, times: int) -> Iterator[Phase]:
    """The phases of an access: one for up to 4 bytes, half warps for 8, quarter warps for 16."""
    together = WARP // max(1, width * size // BANK_BYTES)
    for first in range(0, len(starts), together):
        yield Phase(tuple(starts[first : first + together]), width, size, times)


def conflicts(
    found: Iterable[Phase], row: int, swizzle: Swizzle | None, enough: float = inf
) -> int:
    """Wavefronts in addition to one a phase, with rows of ``row`` elements; of more than ``enough``
    only that they are more."""
    total = 0
    for phase in found:
        total += (_wavefronts(phase, row, swizzle) - 1) * phase.times
        if total > enough:
            break
    return total


@lru_cache(maxsize=64)
def best_swizzle(
    found: tuple[Phase, ...], row: int, options: tuple[Swizzle, ...]
) -> tuple[int, Swizzle]:
    """The first of the options with the fewest conflicts, and how many those are.

    Raises ValueError if there are none.
    """
    least = inf

    def cost(option: Swizzle) -> int:
        nonlocal least
        costs = conflicts(found, row, option, least)
        least = min(least, costs)
        return costs

    return fewest(((cost(option), option) for option in options), itemgetter(0))


def _wavefronts(phase: Phase, row: int, swizzle: Swizzle | None) -> int:
    """The most words of a bank, of wide accesses that are aligned the most of a group of banks."""
    step, span = phase.width * phase.size, BANKS * BANK_BYTES
    starts = {
        (at * row + (swizzle.column(at, column) if swizzle else column)) * phase.size
        for at, column in phase.positions
    }
    if step % BANK_BYTES == 0 and span % step == 0 and not any(start % step for start in starts):
        return max(Counter(start % span for start in starts).values())
    words = {
        word
        for start in starts
        for word in range(start // BANK_BYTES, -(-(start + step) // BANK_BYTES))
    }
    return max(Counter(word % BANKS for word in words).values())


def fewest(options: Iterable[T], cost: Callable[[T], int]) -> T:
    """The first of the options with the least cost; nothing is tried after one that costs nothing.

    Raises ValueError if there are none.
    """

    def until_nothing() -> Iterator[tuple[int, T]]:
        for option in options:
            costs = cost(option)
            yield costs, option
            if not costs:
                return

    return min(until_nothing(), key=lambda each: each[0])[1]


def candidates(kernel: Kernel, tile: Buffer) -> tuple[Swizzle, ...]:
    """Every swizzle that keeps wide accesses contiguous and whose period is at most that of the
    banks; small patterns first."""
    outer, inner = tile.letters
    row, rows, widest = tile.extent(inner), tile.extent(outer), wide_access(kernel, tile)
    most = BANKS * BANK_BYTES // BYTES[tile.dtype]
    found = [
        Swizzle(by, every, chunk)
        for by in _powers(2, BANKS)
        for chunk in _powers(widest, most // by)
        if row % (by * chunk) == 0
        for every in _powers(1, max(1, rows // 2))
    ]
    return tuple(sorted(found, key=lambda s: (s.period, s.by, s.every)))


def _powers(first: int, last: int) -> tuple[int, ...]:
    return tuple(1 << n for n in range(11) if first <= 1 << n <= last)
