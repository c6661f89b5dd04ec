"""Track which tile each stage, slot and staging register of a block holds.

What is moved is not computed: the tile of an operation follows from what was put where it reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal, cast

from gemmgen.analyze.analyzed_kernel import AnalyzedKernel
from gemmgen.analyze.block_step import BlockStep
from gemmgen.analyze.whole_tiles import k_step
from gemmgen.interpreter.expressions import compile_expression
from gemmgen.interpreter.scope import Scope, known
from gemmgen.ir import expanded, names
from gemmgen.ir.buffers import Space
from gemmgen.ir.expr import Expr
from gemmgen.ir.nodes import Copy, Kernel, Map, Promote
from gemmgen.ir.output_slices import StageSlice, StoreBoxes, StoreSlice
from gemmgen.ir.partial_sums import Arrive, ReducePartials, StorePartial

Content = tuple[int, int | None]
"""A tile, and an element along k within it; None for the whole tile."""


MOVES_NOTHING = (
    expanded.DescribeOperands,
    expanded.MultiplyAgain,
    expanded.ReadScales,
    expanded.Unscale,
    Promote,
)
"""Operations around the multiplications, and those that few kernels have."""


class BlockContents:
    """The contents of block 0 and the integers that its program has computed, by their names."""

    def __init__(self, kernel: AnalyzedKernel, values: Mapping[str, int]):
        self.kernel: Kernel = kernel.program.main
        self.problem, self.step = kernel.program.problem, k_step(kernel)
        self.names = {c.name: c.value for c in kernel.lowered.constants} | dict(values)
        self.end = values[kernel.lowered.interface.extent(self.problem.k)]
        if self.kernel.work.parts > 1:
            self.end //= self.kernel.work.parts
            self.names |= {names.start(self.problem.k).name: 0}
            self.names |= {names.stop(self.problem.k).name: self.end}
        self.names |= {names.rank(letter).name: 0 for letter, _ in self.kernel.work.cluster}
        self.holds: dict[tuple[str, int], Content] = {}
        """By stage or slot."""
        self.loaded: dict[str, int] = {}
        """By staging registers."""
        self.first = 0
        """Of the tile of C at hand the first step, counted over all of them."""

    def value(self, expr: Expr) -> int:
        scope = Scope()
        for name, number in self.names.items():
            scope.bind(name, known(number, "int"))
        return int(cast(int, compile_expression(expr, scope).known))

    def stage(self, expr: Expr | None) -> int:
        return 0 if expr is None else self.value(expr)

    def operation(self, node: expanded.Timed) -> Iterator[BlockStep]:
        """Run an operation that moves elements or computes with them."""
        match node:
            case Map() | StoreSlice() | StoreBoxes():
                yield BlockStep("write", self.problem.c.name)
            case StageSlice():
                yield BlockStep("store", self.problem.c.name)
            case expanded.Multiply():
                yield from self.multiply(node)
            case expanded.Fetch():
                yield from self.fetch(node)
            case expanded.LoadLaneSlice(copies, origin):
                for copy in copies:
                    yield self.load(copy, origin, direct=True)
            case (
                expanded.Load() | expanded.Store() | expanded.Transfer() | expanded.CopyTileAsync()
            ):
                yield from self.copy(node)
            case StorePartial():
                yield BlockStep("write", "workspace")
            case expanded.WarpReduce() | ReducePartials():
                yield BlockStep("reduce")
            case _:
                assert isinstance(node, (Arrive, *MOVES_NOTHING)), node

    def copy(
        self,
        node: expanded.Load | expanded.Store | expanded.Transfer | expanded.CopyTileAsync,
    ) -> Iterator[BlockStep]:
        """Run a copy of a tile to shared memory."""
        match node:
            case expanded.Load(copy, origin):
                yield self.load(copy, origin)
            case expanded.Store(copy, stage):
                yield self.store("store", copy, self.loaded[copy.src], stage)
            case expanded.Transfer(copy, origin, stage):
                loaded = self.load(copy, origin)
                yield loaded
                yield self.store("store", copy, loaded.tile, stage)
            case expanded.CopyTileAsync(copy, origin, stage):
                yield self.store("copy", copy, self.tile(origin), stage)

    def tile(self, origin: Expr) -> int:
        return self.value(origin) // self.step + self.first

    def load(self, copy: Copy, origin: Expr, *, direct: bool = False) -> BlockStep:
        """Run a load; ``direct``: to the registers that the multiply-adds read."""
        tile = self.loaded[copy.src] = self.tile(origin)
        if direct:
            self.holds[copy.dst, 0] = tile, None
        return BlockStep("load", copy.src, tile, empty=self.is_past_end(tile))

    def store(
        self, what: Literal["store", "copy"], copy: Copy, tile: int, stage: Expr | None
    ) -> BlockStep:
        at = self.stage(stage)
        self.holds[copy.dst, at] = tile, None
        operand = self.kernel.buffer(copy.dst).tensor
        return BlockStep(what, operand, tile, None, at, empty=self.is_past_end(tile))

    def is_past_end(self, tile: int) -> bool:
        return (tile - self.first) * self.step >= self.end

    def fetch(self, node: expanded.Fetch) -> Iterator[BlockStep]:
        copy, slot, k = node.copy, self.stage(node.slot), self.value(node.k)
        if self.kernel.buffer(copy.src).space is Space.GLOBAL:
            held = self.position(k, node.origin)
            yield BlockStep("load", copy.src, *held, slot)
        else:
            held = self.in_stage(copy.src, node.stage, k)
            operand, empty = self.kernel.buffer(copy.src).tensor, self.is_past_end(held[0])
            yield BlockStep("read", operand, *held, slot, empty=empty)
        self.holds[copy.dst, slot] = held

    def multiply(self, node: expanded.Multiply) -> Iterator[BlockStep]:
        """Run a multiplication; it reads operands that are not in registers itself."""
        k, held = self.value(node.k), list[Content]()
        for name, stage in ((node.contract.a, node.a_stage), (node.contract.b, node.b_stage)):
            match self.kernel.buffer(name).space:
                case Space.GLOBAL:
                    held.append(self.position(k, node.origin))
                    yield BlockStep("load", name, *held[-1])
                case Space.SHARED:
                    held.append(self.in_stage(name, stage, k))
                    yield BlockStep("read", self.kernel.buffer(name).tensor, *held[-1])
                case Space.REGISTER:
                    held.append(self.holds[name, self.stage(stage)])
        assert held[0] == held[1], "A and B are of different steps"
        yield BlockStep("multiply", "", *held[0])

    def position(self, k: int, origin: Expr | None) -> Content:
        """The position of an element of a global operand: ``k`` counts from ``origin``, or from
        0."""
        tile, within = divmod(k, self.step) if origin is None else (self.tile(origin), k)
        return tile, self.within(within)

    def in_stage(self, tile: str, stage: Expr | None, k: int) -> Content:
        """The tile that a stage holds, and the position of ``k`` in it."""
        return self.holds[tile, self.stage(stage)][0], self.within(k)

    def within(self, k: int) -> int | None:
        return None if self.step == 1 else k
