"""Numbers for a thread block: micro-tiles, threads along m and n, and the length of a run."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from math import gcd

from gemmgen.base.record import record
from gemmgen.fuzz.factors import NONE, Plan

MICRO = {
    NONE: (1,),
    "1": (1,),
    "odd": (3, 5, 7),
    "even": (2, 6),
    "fours": (4, 8, 12),
    "fragments": (16, 32, 48, 64),
}
"""``fragments``: what a warp has of them."""
WARP, SIDE, USUAL = 32, 16, 64
"""Threads of a warp, the side of a fragment, and the most that a warp has where nothing says so."""
PIECES = {NONE: (0,), "1": (1,), "2": (2,), "4": (4,), "other": (3, 5, 6, 7, 8, 12)}
THREADS = {"32": (32,), "some": (64, 96, 128, 192, 256), "many": (512, 768, 1024)}
LONGEST, LARGEST, MOST_REGISTERS = 256, 8192, 64
NAIVE = (8, 32)
"""The naive kernel's threads: 32 along x."""


@record
class Grid:
    """A thread's elements along m and n, ``interleave`` (0: none), and the block's threads; on
    tensor cores, and where lanes share sums, a warp's and the block's warps, each of ``group``
    threads."""

    micro: tuple[int, int]
    interleave: int
    threads: tuple[int, int]
    group: int = 1

    @property
    def count(self) -> int:
        """Threads of the block."""
        return self.threads[0] * self.threads[1] * self.group

    @property
    def tile(self) -> tuple[int, int]:
        return self.micro[0] * self.threads[0], self.micro[1] * self.threads[1]


@record
class Wish:
    """What a plan asks of its grid.

    ``tiles`` and ``runs`` are what the tile, and a thread's run of neighbours, must be multiples of
    along m and n.  ``fixed`` is the tile of a kernel that states none.  ``lanes`` share sums.
    """

    micro: tuple[str, str]
    interleave: str
    threads: str
    warp: str
    tiles: tuple[int, int]
    runs: tuple[int, int]
    fixed: tuple[int, int] | None
    lanes: bool = False


def last_shared(plan: Mapping[str, str], name: str) -> str:
    """The contiguous letter of an operand's tile in shared memory."""
    order = plan[f"order {name}"]
    return order[0] if plan[f"cache {name}"] == "turned" else order[1]


def widest(plan: Mapping[str, str], name: str) -> int:
    """The widest access to the rows of an operand's tile in shared memory; a fragment's lines have
    8 elements a piece."""
    kept = plan[f"cache {name}"] == "kept"
    wide = int(plan[f"{name}.global"]) if kept else 1
    return max(wide, int(plan[f"{name}.shared"]), 8 if plan["tensor"] != NONE else 1)


def permuted(plan: Mapping[str, str], name: str) -> int:
    """Elements of a row that a swizzle permutes, if its chunks are as small as they may be."""
    by = plan[f"swizzle {name}"]
    return 1 if by == NONE else int(by) * widest(plan, name)


def wish(plan: Plan) -> Wish:
    """A plan's wish."""
    a, b, c = (int(plan[f"{name}.global"]) for name in "ABC")
    tiles, runs = [1, 1], [int(plan["A.shared"]), int(plan["B.shared"])]
    for at, (width, along) in enumerate(((a, plan["order A"][1]), (b, plan["order B"][1]))):
        if along != "k":
            wanted = tiles if plan[f"cache {'AB'[at]}"] != NONE else runs
            wanted[at] = max(wanted[at], width)
    for at, name in enumerate("AB"):
        if last_shared(plan, name) != "k":
            tiles[at] = max(tiles[at], permuted(plan, name))
    last = "mn".index(plan["order C"][1])
    runs[last] = max(runs[last], c)
    fixed = None
    if plan["tile"] == NONE:
        along_x = plan["order C"][1] if plan["bind"] == NONE else plan["bind"]
        fixed = NAIVE if along_x == "n" else (NAIVE[1], NAIVE[0])
    micro = plan["register m"], plan["register n"]
    if plan["tensor"] != NONE:
        micro = "fragments", "fragments"
    return Wish(
        micro,
        plan["interleave"],
        plan["threads"],
        plan["warp"],
        (tiles[0], tiles[1]),
        (runs[0], runs[1]),
        fixed,
        plan["parts"] == "lanes",
    )


@cache
def grids(wanted: Wish) -> tuple[Grid, ...]:
    """All grids that a wish allows."""
    return tuple(
        grid
        for m in MICRO[wanted.micro[0]]
        for n in MICRO[wanted.micro[1]]
        for piece in PIECES[wanted.interleave]
        if _runs(wanted, (m, n), piece)
        for threads in _threads(wanted.threads, wanted.warp, _group(wanted))
        if _fits(wanted, grid := Grid((m, n), piece, threads, _group(wanted)))
    )


def _group(wanted: Wish) -> int:
    return WARP if wanted.micro[0] == "fragments" or wanted.lanes else 1


def _runs(wanted: Wish, micro: tuple[int, int], piece: int) -> bool:
    """Is each thread's run of neighbours a multiple of what is asked?"""
    if piece and gcd(piece, *micro) != piece:
        return False
    runs = (piece, piece) if piece else micro
    return all(run % by == 0 for run, by in zip(runs, wanted.runs, strict=True))


def whole_runs(plan: Mapping[str, str], letter: str, reads: str) -> bool:
    """Is there a micro-tile along ``letter`` whose runs the reads (the factor ``reads``) and the
    stores divide?  A small part of ``grids``, which tells early that there are none."""
    width = int(plan[reads])
    if plan["order C"][1] == letter:
        width = max(width, int(plan["C.global"]))
    micro = "fragments" if plan["tensor"] != NONE else plan[f"register {letter}"]
    return any(
        size % (piece or 1) == 0 and (piece or size) % width == 0
        for size in MICRO[micro]
        for piece in PIECES[plan["interleave"]]
    )


def _fits(wanted: Wish, grid: Grid) -> bool:
    m, n = grid.tile
    fragments = wanted.micro[0] == "fragments"
    if grid.micro[0] * grid.micro[1] > MOST_REGISTERS * (WARP if fragments else 1):
        return False
    if fragments and wanted.warp == NONE and grid.micro != (_usual(m), _usual(n)):
        return False
    if wanted.fixed is not None:
        return (m, n) == wanted.fixed
    if max(m, n) > LONGEST or m * n > LARGEST:
        return False
    return all(size % by == 0 for size, by in zip((m, n), wanted.tiles, strict=True))


def _usual(size: int) -> int:
    """What a warp has of a tile where nothing says so."""
    return next(s for s in range(USUAL, 0, -SIDE) if size % s == 0)


@cache
def _threads(wanted: str, warp: str, group: int) -> tuple[tuple[int, int], ...]:
    lanes = (1, 1)
    if warp not in (NONE, "fragments"):
        rows, columns = (int(size) for size in warp.split("x"))
        lanes = (rows, columns)
    return tuple(
        (rows, total // rows)
        for total in (count // group for count in THREADS[wanted])
        for rows in range(1, total + 1)
        if total % rows == 0 and rows % lanes[0] == 0 and (total // rows) % lanes[1] == 0
    )
