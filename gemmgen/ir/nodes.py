"""The declared IR: a block-level tile program, which the passes rewrite.

An operation runs once, by all threads of the block.  There are no thread loops and no barriers
here, so a later rung of the ladder never has to undo an earlier one: ``expand`` adds stages and
barriers, ``lower`` makes per-thread code.  ``origins`` name the canonical directives that shaped a
node; they are part of it.

Over 300 lines: a class for each node of one IR.
"""

from __future__ import annotations

from typing import Literal

from gemmgen.base.record import record
from gemmgen.ir.atoms import Atom
from gemmgen.ir.buffers import Buffer, Origins, Role, Spread
from gemmgen.ir.dtypes import DType
from gemmgen.ir.expr import Expr
from gemmgen.ir.intent import Intent
from gemmgen.ir.kept_order import keeps_order
from gemmgen.ir.problem import Problem
from gemmgen.ir.target import WARPGROUP

FmaOrder = Literal["rows", "serpentine", "zigzag"]
CopyMode = Literal["registers", "cp_async", "tma"]
"""How a tile travels into shared memory: ``registers`` loads it and stores it, ``cp_async`` copies
it while the threads go on, with ``tma`` TMA does, issued by one thread."""
VectorSides = Literal["both", "global"]
"""Which sides of a wide copy are vector accesses.  ``global``: the access to global memory; the one
to shared memory is a vector only if the tile's rows are aligned, else it is scalar."""
Eviction = Literal["normal", "first", "last"]
"""When L2 gives up what was copied: ``first`` before all else, ``last`` after all else."""

Reduce = Literal["ordered", "atomic"]
"""How the parts of a split sum are added: in their order, or as they come."""
Residue = Literal["last", "first"]
RasterOrder = Literal["columns", "hilbert"]
"""How the tiles of a group of block rows follow each other: column by column, or square by square
along a Hilbert curve."""


@record
class Work:
    """Which block computes which tile and which range of k: tile extents per letter of C, the order
    of the blocks, and split-K.

    ``batch`` letters index the matrices of C: they vary slowest.  ``raster`` > 1 orders the tiles
    in groups of that many block rows, in ``order``, so that concurrent blocks share L2.  ``parts``
    blocks split the K of each tile; part p sums the p-th range of whole steps along k, and the last
    block to arrive adds the parts, by ``reduce``, and computes the epilogue.  With ``groups`` of as
    many consecutive parts each, the last block of each group adds its parts, and the last of these
    adds the groups.  ``persistent``: there are as many blocks as the GPU holds at once, and each
    walks over its share of the tiles.  ``overlap``: blocks may begin while the preceding kernel
    still runs.  Blocks of a ``cluster``, this many along each letter of ``tile`` (empty: they run
    alone), run together and share tiles of the operands; then ``raster`` orders clusters.
    """

    tile: tuple[tuple[str, int], ...]
    raster: int = keeps_order(1)
    parts: int = 1
    reduce: Reduce = "ordered"
    groups: int = 1
    origins: Origins = ()
    batch: tuple[str, ...] = ()
    persistent: bool = keeps_order(False)
    order: RasterOrder = keeps_order("columns")
    overlap: bool = keeps_order(False)
    cluster: tuple[tuple[str, int], ...] = keeps_order(())

    def size(self, letter: str) -> int:
        return dict(self.tile)[letter]


@record
class Bounds:
    """Minimum resident blocks per multiprocessor (second argument of ``__launch_bounds__``); 0 if
    ``lower`` chooses."""

    blocks: int = 0
    origins: Origins = ()


@record
class Producers:
    """Warpgroups of a block, after the threads that multiply, which copy the tiles and do nothing
    else.

    ``pingpong``: groups of consumers that alternate, each with the accumulators of a whole tile.
    The first takes the block's first tile, the next its next.
    """

    warpgroups: int = keeps_order(0)
    origins: Origins = ()
    pingpong: int = keeps_order(1)

    @property
    def threads(self) -> int:
        return WARPGROUP * self.warpgroups


@record
class Init:
    """``dst = 0`` over its tile."""

    dst: str


@record
class Copy:
    """``dst = src`` over the tile of ``dst``; elements outside the problem's extents become zero.

    From shared to global memory it is ``src``'s tile that moves, and elements outside are left out.
    ``width`` elements move at once if both sides allow it; ``vectors`` says which sides must.
    ``evict`` is a hint for the L2 cache.
    """

    SYNTAX = "{dst} = {src}"

    dst: str
    src: str
    width: int = keeps_order(1)
    mode: CopyMode = keeps_order("registers")
    evict: Eviction = keeps_order("normal")
    vectors: VectorSides = keeps_order("both")
    origins: Origins = ()


@record
class Split:
    """A kernel of its own, launched first: ``dst = src`` as this many ``parts`` of a narrower type,
    a plane of global memory each, of ``scaled`` rows or not (``ir/decompositions.py``)."""

    SYNTAX = "{dst} = {src}"

    dst: str
    src: str
    parts: int
    scaled: bool = False
    origins: Origins = ()


@record
class Contract:
    """``acc += a * b`` for a step of k, by an atom; ``order`` is that of a thread's FMAs.

    With ``into`` each element is the sum of this many ``parts`` of that type, and this many
    ``products`` of terms are computed in place of one (``ir/decompositions.py``), by an atom
    that multiplies parts; ``fma`` multiplies whole numbers all the same.
    """

    SYNTAX = "{acc} += {a} * {b}"

    acc: str
    a: str
    b: str
    order: FmaOrder = keeps_order("rows")
    atom: Atom = "fma"
    into: DType | None = None
    parts: int = 1
    products: int = 1
    origins: Origins = ()


@record
class Promote:
    """``dst += part`` after each ``every`` terms along k that a block sums, and after its last
    ones; then ``part`` begins at zero again.  ``scales`` are the tensors, or tiles of them, whose
    factors, of the block of each operand that the terms are in, multiply ``part``."""

    SYNTAX = "{dst} += {part}"

    dst: str
    part: str
    every: int
    scales: tuple[str, ...] = ()
    origins: Origins = ()


@record
class Map:
    """``dst = value`` elementwise over the block's tile; ``acc`` in ``value`` is the register
    tile.

    If ``dst`` is in shared memory, it has room for one row of each thread's micro-tile: the tile
    passes through it slice by slice, each of which the copy that follows takes to global memory.
    ``through`` names the shared buffer that the accumulators pass through, slice by slice, where no
    thread knows which of them it holds.
    """

    SYNTAX = "{dst} = {value}"

    dst: str
    value: Expr
    width: int = keeps_order(1)
    origins: Origins = ()
    through: str | None = keeps_order(None)


@record
class Loop:
    """Serial over one letter, ``step`` at a time; over the tile in a pipeline, else the problem.

    ``unroll`` elements along k at a time; 0 if ``expand`` chooses.
    """

    letter: str
    body: tuple[Copy | Contract | Promote, ...]
    unroll: int = 0
    origins: Origins = ()
    step: int = 1


@record
class Pipeline:
    """Steps of ``step`` along ``letter``; in each, tiles are produced and then consumed.

    ``unroll`` steps at a time.  ``residue`` is the step that is ragged if the extent is no
    multiple of ``step``; if it is the first, that one begins before index 0.
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
    """One kernel: its work, its buffers and its body, what its launch is bounded by, and which of
    its threads only copy."""

    name: str
    work: Work
    buffers: tuple[Buffer, ...]
    body: tuple[Statement, ...]
    bounds: Bounds = Bounds()
    producers: Producers = Producers()

    def buffer(self, name: str) -> Buffer:
        return next(b for b in self.buffers if b.name == name)

    def has(self, name: str) -> bool:
        return any(b.name == name for b in self.buffers)

    @property
    def accumulator(self) -> Buffer:
        return next(b for b in self.buffers if b.role is Role.ACCUMULATOR)

    @property
    def spread(self) -> Spread:
        """How the accumulators are dealt out to the threads that multiply."""
        spread = self.accumulator.spread
        assert spread is not None
        return spread

    @property
    def consumers(self) -> int:
        """All threads of a block that multiply."""
        return self.spread.threads * self.producers.pingpong

    @property
    def threads(self) -> int:
        """All threads of a block: those that multiply, and the producers after them."""
        return self.consumers + self.producers.threads

    @property
    def copying_threads(self) -> int:
        """Threads among which the elements of a tile are dealt that they copy together."""
        return self.spread.threads


@record
class Fact:
    """``name % divisor == 0`` or ``name == equals``: assumed of the arguments, checked at
    launch."""

    name: str
    divisor: int | None = None
    equals: str | None = None


@record
class Program:
    """Kernels launched one after another: ``splits``, then ``kernels``, whose first contracts."""

    problem: Problem
    target: str
    splits: tuple[Split, ...]
    kernels: tuple[Kernel, ...]
    facts: tuple[Fact, ...] = ()
    intent: Intent = Intent()

    @property
    def main(self) -> Kernel:
        return self.kernels[0]
