"""What every part of lowering asks of the kernel: its letters, its tensors, and how what holds its
accumulators is lowered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, Literal

from gemmgen.base.record import record
from gemmgen.expand.ring import rings
from gemmgen.ir import names
from gemmgen.ir.buffers import AxisSpread, Buffer, Space
from gemmgen.ir.control import Define
from gemmgen.ir.dtypes import DType, computed_in
from gemmgen.ir.edit import copy_outward, has_fragments, output_of, pipeline_of, promotion_of
from gemmgen.ir.expanded import ExpandedKernel
from gemmgen.ir.expr import Element, Expr, Int, Var, walk
from gemmgen.ir.lowered import Check, Constant
from gemmgen.ir.nodes import Copy, Kernel, Map, Program
from gemmgen.ir.problem import Problem, Tensor
from gemmgen.ir.simplify import mod, mul
from gemmgen.ir.thread_code import Node
from gemmgen.lower.vectors import accumulator_width, vectors_of

THREADS = Var("THREADS")
X, Y = Var("threadIdx.x"), Var("threadIdx.y")
TID, LANE = Var("tid"), Var("lane")
PARTS, GROUPS = Var("PARTS"), Var("GROUPS")

LowerNode = Callable[["Context", Any], tuple[Node, ...]]
"""One thread's code of an expanded node; the second argument is of the type that a table has it
under."""

SumBody = Callable[[Element | Var, Expr], tuple[Node, ...]]
"""What is done with a piece of a thread's accumulators: the first of them, and its number among
them."""


@record
class Lowering:
    """How a contraction is lowered whose operands and accumulators are held in one way: what
    ``thread``, ``lanes``, ``opaque`` (``ir.atoms.Holding``) mean in a thread's code."""

    owner: Literal["thread", "warp"]
    """What has its own origin in the block's tile."""
    nodes: Mapping[type, LowerNode]
    """The expanded nodes that read, multiply and store what is held."""
    array: Callable[[Context, Buffer], Node]
    """Registers of accumulators, or of an operand."""
    accumulator_row: Callable[[Context], int]
    """Neighbouring registers of a thread's accumulators."""
    each_sum: Callable[[Context, Expr, SumBody], tuple[Node, ...]]
    """A loop over a thread's accumulators, this many neighbours at a time."""
    coordinates: Callable[[Context], Iterable[Define]]
    """Where a thread, or its warp, begins in the block's tile."""
    block: Callable[[Context], tuple[int, int]]
    """A block's threads along x and y."""
    constants: Callable[[Context], Iterable[Constant]]
    """The sizes that these name."""
    threads: Callable[[Context], Expr]
    """The number of a block's threads, as the text computes it."""
    checks: Callable[[Context], Iterable[Check]]
    """What must hold of the constants."""
    born_zero: bool = True
    """Whether the accumulators of a block's only tile are zero where they are declared; else they
    begin with the first product."""


@record
class Context:
    """One kernel being lowered."""

    program: Program
    expanded: ExpandedKernel
    lowering: Lowering

    @property
    def kernel(self) -> Kernel:
        return self.expanded.kernel

    @property
    def problem(self) -> Problem:
        return self.program.problem

    @property
    def letters(self) -> tuple[str, str]:
        """The letters of the output: row, column."""
        return self.problem.m, self.problem.n

    @cached_property
    def leaves_early(self) -> bool:
        """Whether a thread outside C returns at once: it may if no barrier waits for it, and if its
        element follows from its coordinates in the block alone, not from its warp's.  No thread of
        a persistent block may: it has an element in the next tile."""
        spaces = {b.space for b in self.kernel.buffers}
        plain = self.scalar_accumulator and not self.kernel.spread.by_warp
        once = not (self.is_split or self.is_persistent)
        return Space.SHARED not in spaces and plain and once

    @property
    def is_split(self) -> bool:
        """Whether several blocks share a tile."""
        return self.kernel.work.parts > 1

    @property
    def born_zero(self) -> bool:
        """Whether accumulators are zero where they are declared: a persistent block's begin with
        each of its tiles."""
        begin_zero = self.lowering.born_zero or promotion_of(self.kernel) is not None
        return begin_zero and not self.is_persistent

    @property
    def is_persistent(self) -> bool:
        """Whether a block walks over several tiles."""
        return self.kernel.work.persistent

    @property
    def has_roles(self) -> bool:
        """Whether the warps of a block run different programs."""
        return self.kernel.producers.warpgroups > 0

    @cached_property
    def scalar_accumulator(self) -> bool:
        """Whether a thread owns one element, kept in a plain variable."""
        return self.kernel.spread.registers == 1 and not has_fragments(self.kernel)

    def buffer(self, name: str) -> Buffer:
        return self.kernel.buffer(name)

    def axis(self, letter: str) -> AxisSpread:
        along_k = self.kernel.spread.k_layout
        return along_k if along_k and along_k.letter == letter else self.kernel.spread.axis(letter)

    @cached_property
    def tile_copies(self) -> tuple[Copy, ...]:
        """Copies of tiles into shared memory, by all threads of the block together."""
        return tuple(c for c in self._staged if c.mode != "tma")

    @cached_property
    def boxed_copies(self) -> tuple[Copy, ...]:
        """Copies of tiles into shared memory by TMA."""
        return tuple(c for c in self._staged if c.mode == "tma")

    @cached_property
    def boxed_outward(self) -> Copy | None:
        """The copy of the output out of shared memory, if TMA makes it."""
        outward = copy_outward(self.kernel)
        return outward if outward and outward.mode == "tma" else None

    @property
    def _staged(self) -> tuple[Copy, ...]:
        pipeline = pipeline_of(self.kernel)
        produced = pipeline.produce if pipeline else ()
        return tuple(c for c in produced if self.buffer(c.dst).space is Space.SHARED)

    @property
    def copying_threads(self) -> Var:
        """The number of threads that copy a tile together, by its name."""
        producers = self.kernel.producers
        of_all = names.CONSUMERS if producers.warpgroups else THREADS
        return names.CONSUMER if producers.pingpong > 1 else of_all

    @property
    def thread(self) -> Expr:
        """The thread's number among those that share a tile, in a block of one dimension."""
        return mod(X, names.CONSUMER) if self.kernel.producers.pingpong > 1 else X

    @property
    def named(self) -> tuple[str, ...]:
        """The letters of the output, batches first: what an epilogue has as numbers."""
        return (*self.kernel.work.batch, *self.letters)

    @property
    def tiled(self) -> tuple[str, ...]:
        """Row, column, and the contracted letter where this kernel contracts."""
        contracts = self.kernel.has(self.problem.a.name)
        return (*self.letters, self.problem.k) if contracts else self.letters

    @cached_property
    def final(self) -> Map:
        """The statement that computes the output."""
        return next(s for s in self.kernel.body if isinstance(s, Map))

    @cached_property
    def output(self) -> str:
        """The tensor that it writes."""
        return output_of(self.kernel)

    @property
    def numbers(self) -> DType:
        """What its expression is computed in."""
        return computed_in(self.problem.accumulate, self.buffer(self.output).dtype)

    @cached_property
    def element(self) -> Var:
        """Numbers the neighbours of a wide access: ``e``, or ``elem`` where a letter, a tensor or a
        scalar is called ``e``."""
        chosen = {v.name for v in walk(self.final.value) if isinstance(v, Var)}
        chosen |= {self.kernel.name, *self.problem.letters, *(t.name for t in self.tensors)}
        return Var("elem" if "e" in chosen else "e")

    @cached_property
    def vectors(self) -> dict[str, tuple[Var, int]]:
        """The names and widths of vector accesses, by what they fill."""
        row = self.lowering.accumulator_row(self)
        return vectors_of(self.kernel, accumulator_width(row, self.problem.accumulate))

    def width(self, holder: str) -> Expr:
        """Elements of an access that fills ``holder``, by name; 1 if it is not a vector."""
        return self.vectors[holder][0] if holder in self.vectors else Int(1)

    def pad(self, tile: Buffer) -> Expr:
        """Elements at the end of a row of a shared tile, by name: ``A_PAD``."""
        return names.pad(tile.tensor) if tile.pad else Int(0)

    def stages(self, tile: Buffer) -> Expr:
        """How many stages a shared tile has, by name if there is one."""
        for ring in rings(self.kernel, pipeline_of(self.kernel)):
            if any(copy.dst == tile.name for copy in ring.copies):
                return ring.number()
        groups = self.kernel.producers.pingpong
        if groups == 1:
            return Int(tile.stages)
        return mul(names.CONSUMER_GROUPS, Int(tile.stages // groups))

    def tensor(self, name: str) -> Tensor:
        """A tensor of the kernel in global memory, with its batch letters; of one's parts that
        tensor."""
        source = {split.dst: split.src for split in self.program.splits}.get(name, name)
        return next(t for t in self.tensors if t.name == source)

    @cached_property
    def tensors(self) -> tuple[Tensor, ...]:
        """Those of the buffers, then the epilogue's own in the order in which it names them."""
        problem = self.problem
        known = {t.name: t for t in (problem.a, problem.b, problem.c)}
        found: dict[str, Tensor] = {}
        for buffer in self.kernel.buffers:
            if buffer.space is Space.GLOBAL and buffer.parts == 1:
                # A matrix between two kernels has the letters of the output.
                own = Tensor(buffer.name, (*problem.batch, *buffer.letters), buffer.dtype)
                found[buffer.name] = known.get(buffer.name, own)
        for scaling in problem.scales if self.kernel.has(problem.a.name) else ():
            found[scaling.tensor.name] = scaling.tensor
        for e in walk(self.final.value):
            if isinstance(e, Element) and e.buffer not in found:
                letters = tuple(i.name for i in e.indices if isinstance(i, Var))
                found[e.buffer] = Tensor(e.buffer, letters, self.problem.dtype(e.buffer))
        return tuple(found.values())


def next_name(copy: Copy) -> str:
    """The staging registers of a copy: ``A_next``."""
    return f"{copy.src}_next"
