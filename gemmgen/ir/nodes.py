"""The declared IR: a block-level tile program, which the passes rewrite.

An operation runs once, by all threads of the block.  There are no thread loops and no barriers
here, so a later rung of the ladder never has to undo an earlier one: ``expand`` places stages and
barriers, ``lower`` makes per-thread code.  ``origins`` name the canonical directives that shaped a
node; they are part of it.
"""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from math import prod
from typing import Literal

from gemmgen.base.record import record
from gemmgen.ir.atoms import ATOMS, Atom, Holding
from gemmgen.ir.dtypes import DType
from gemmgen.ir.expr import Expr
from gemmgen.ir.problem import Problem

Origins = tuple[str, ...]
FmaOrder = Literal["rows", "serpentine", "zigzag"]
CopyMode = Literal["registers", "cp_async"]
"""How a tile travels into shared memory: ``registers`` loads it and stores it, ``cp_async`` copies
it while the threads go on."""


Reduce = Literal["ordered", "atomic"]
"""How the parts of a split sum are added: in their order, or as they come."""


class Space(Enum):
    GLOBAL = "global"
    SHARED = "shared"
    REGISTER = "register"


@record
class AxisSpread:
    """How one letter of a tile is distributed over threads.

    The element at ``((warp * pieces + piece) * lanes + lane) * width + e`` belongs to thread
    (warp, lane), which keeps it in register ``piece * width + e``.  Without ``warp_tile`` there is
    one "warp", the whole block, and ``lanes`` counts the threads along the letter.
    """

    SYNTAX = "{letter}={warps}x{pieces}x{lanes}x{width}"

    letter: str
    warps: int
    pieces: int
    lanes: int
    width: int

    @property
    def extent(self) -> int:
        return self.warps * self.pieces * self.lanes * self.width

    @property
    def threads(self) -> int:
        return self.warps * self.lanes

    @property
    def registers(self) -> int:
        """Elements per thread along the letter."""
        return self.pieces * self.width


@record
class Spread:
    """Which thread owns which element of a register tile; ``x`` is the letter that varies
    fastest.

    ``atom`` is the instruction for whose pieces it is made.  If several lanes hold a piece of that
    atom together, a "thread" above is all of them: with ``wmma`` the lanes of a warp own a piece of
    ``width`` x ``width``.

    With ``by_warp`` a warp owns a sub-tile, and a thread's coordinates are those within its warp,
    even if one warp owns the whole tile.  An atom of a warp says so already.

    With ``k_layout``, the axis of the contracted letter, a "thread" above is ``lanes`` neighbouring
    ones: each sums its own k elements.
    """

    SYNTAX = "{axes}"

    axes: tuple[AxisSpread, ...]
    x: str
    atom: Atom = "fma"
    k_layout: AxisSpread | None = None
    by_warp: bool = False

    def axis(self, letter: str) -> AxisSpread:
        return next(a for a in self.axes if a.letter == letter)

    @property
    def holding(self) -> Holding:
        """What holds the elements: a thread, or lanes of a warp together."""
        return "lanes" if self.k_layout else ATOMS[self.atom].holding

    @property
    def lanes_per_sum(self) -> int:
        """Lanes that have partial sums of the same element."""
        return self.k_layout.lanes if self.k_layout else 1

    @property
    def lanes_per_piece(self) -> int:
        """Lanes that hold a piece of the atom together."""
        return ATOMS[self.atom].lanes

    @property
    def threads(self) -> int:
        shared = self.lanes_per_piece * self.lanes_per_sum
        return prod(a.threads for a in self.axes) * shared

    @property
    def warps(self) -> int:
        return prod(a.warps for a in self.axes)

    @property
    def registers(self) -> int:
        """Elements per thread."""
        return prod(a.registers for a in self.axes) // self.lanes_per_piece

    def with_axes(self, *axes: AxisSpread) -> Spread:
        """The same spread with axes of these letters replaced."""
        new = {a.letter: a for a in axes}
        return replace(self, axes=tuple(new.get(a.letter, a) for a in self.axes))


@record
class Swizzle:
    """Chunks of ``chunk`` elements change places within a row: chunk c of row r stands where chunk
    ``c ^ (r / every % by)`` would.  ``by`` and ``chunk`` are powers of two."""

    SYNTAX = ""

    by: int
    every: int
    chunk: int

    @property
    def period(self) -> int:
        """Elements of a row that change places among themselves."""
        return self.by * self.chunk

    def column(self, row: int, column: int) -> int:
        """Where the element in ``column`` of ``row`` stands; its own inverse."""
        return column ^ (row // self.every % self.by * self.chunk)


@record
class Buffer:
    """A tensor in global memory, or a tile of one in shared memory or registers.

    Of a tensor with batches it is the block's own matrix: batch letters are the work's alone.

    ``shape`` gives letters in storage order, the last one contiguous, and tile extents; a global
    buffer's extents are None (the problem's).
    A tile has ``stages`` copies, rows with ``pad`` elements more, and chunks of rows that change
    places by ``swizzle``.  ``spread`` belongs to register buffers.
    """

    SYNTAX = "{space} {name}{shape} {dtype}"

    name: str
    space: Space
    dtype: DType
    shape: tuple[tuple[str, int | None], ...]
    pad: int = 0
    stages: int = 1
    swizzle: Swizzle | None = None
    spread: Spread | None = None
    origins: Origins = ()

    @property
    def letters(self) -> tuple[str, ...]:
        return tuple(letter for letter, _ in self.shape)

    def extent(self, letter: str) -> int:
        """The tile's extent along ``letter``; a bug for a global buffer."""
        size = dict(self.shape)[letter]
        assert size is not None
        return size


@record
class Work:
    """Which block computes which tile and which terms: tile extents per letter of C, the order of
    the blocks, and how many of them share a tile.

    ``batch`` letters number the matrices of C, one of which is a block's: they vary slowest.
    ``raster`` > 1 walks the tiles in groups of that many block rows, so that neighbours share L2.
    ``parts`` blocks share each tile; part p sums the p-th range of whole steps along k, and the
    block that comes last adds the parts, as ``reduce`` says, and computes the epilogue.  With
    ``groups`` of as many neighbouring parts each, the last one of each group adds its parts, and
    the last of these adds the groups.
    """

    tile: tuple[tuple[str, int], ...]
    raster: int = 1
    parts: int = 1
    reduce: Reduce = "ordered"
    groups: int = 1
    origins: Origins = ()
    batch: tuple[str, ...] = ()

    def size(self, letter: str) -> int:
        return dict(self.tile)[letter]


@record
class Bounds:
    """How many blocks a multiprocessor is to hold at once, at the least; 0 where ``lower``
    chooses."""

    blocks: int = 0
    origins: Origins = ()


@record
class Init:
    """``dst = 0`` over its tile."""

    dst: str


@record
class Copy:
    """``dst = src`` over the tile of ``dst``; elements outside the problem's extents become zero.

    ``width`` elements move at once where both sides allow it.
    """

    SYNTAX = "{dst} = {src}"

    dst: str
    src: str
    width: int = 1
    mode: CopyMode = "registers"
    origins: Origins = ()


@record
class Contract:
    """``acc += a * b`` for a step of k, by an atom; ``order`` is that of a thread's FMAs."""

    SYNTAX = "{acc} += {a} * {b}"

    acc: str
    a: str
    b: str
    order: FmaOrder = "rows"
    atom: Atom = "fma"
    origins: Origins = ()


@record
class Map:
    """``dst = value`` elementwise over the block's tile; ``acc`` in ``value`` is the register
    tile.

    ``through`` names the shared buffer that the sums pass through, slice by slice, where no thread
    knows which of them it holds.
    """

    SYNTAX = "{dst} = {value}"

    dst: str
    value: Expr
    width: int = 1
    origins: Origins = ()
    through: str | None = None


@record
class Loop:
    """Serial over one letter, ``step`` at a time; over the tile in a pipeline, else the problem.

    ``unroll`` terms at a time; 0 where ``expand`` chooses.
    """

    letter: str
    body: tuple[Copy | Contract, ...]
    unroll: int = 0
    origins: Origins = ()
    step: int = 1


Residue = Literal["last", "first"]


@record
class Pipeline:
    """Steps of ``step`` along ``letter``; in each, tiles are produced and then consumed.

    ``unroll`` steps at a time.  ``residue`` is the step that is ragged where the extent is no
    multiple of ``step``; where it is the first, that one begins before index 0.
    """

    SYNTAX = "{letter} by {step}"

    letter: str
    step: int
    produce: tuple[Copy, ...]
    consume: tuple[Loop, ...]
    unroll: int = 1
    residue: Residue = "last"
    origins: Origins = ()


Statement = Init | Copy | Contract | Map | Loop | Pipeline


@record
class Kernel:
    """One kernel: its work, its buffers and its body, and what its launch is bounded by."""

    name: str
    work: Work
    buffers: tuple[Buffer, ...]
    body: tuple[Statement, ...]
    bounds: Bounds = Bounds()

    def buffer(self, name: str) -> Buffer:
        return next(b for b in self.buffers if b.name == name)

    def has(self, name: str) -> bool:
        return any(b.name == name for b in self.buffers)

    @property
    def spread(self) -> Spread:
        """The spread of the accumulator, which fixes the threads of a block."""
        spread = self.buffer("acc").spread
        assert spread is not None
        return spread


@record
class Fact:
    """``name % divisor == 0`` or ``name == equals``: assumed of the arguments, checked at
    launch."""

    name: str
    divisor: int | None = None
    equals: str | None = None


@record
class Program:
    """Kernels launched one after another on one stream; the first one contracts."""

    problem: Problem
    target: str
    kernels: tuple[Kernel, ...]
    facts: tuple[Fact, ...] = ()

    @property
    def main(self) -> Kernel:
        return self.kernels[0]
