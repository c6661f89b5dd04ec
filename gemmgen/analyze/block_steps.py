"""The steps of a block in the order in which its expanded program takes them.

The program's loops, conditions and stages are run on integers; what its operations move is not
computed.  Which tile an operation works on follows from what was put into the stage or the slot
that it reads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from copy import copy as copy_of
from dataclasses import replace
from typing import Literal, cast

from gemmgen.analyze.explain import AnalyzedKernel
from gemmgen.analyze.launch_arguments import arguments_of
from gemmgen.analyze.whole_tiles import k_step, whole_tiles
from gemmgen.base.record import record
from gemmgen.expand import expand
from gemmgen.interpreter.expressions import compile_expression
from gemmgen.interpreter.scope import Scope, known
from gemmgen.ir import expanded, names
from gemmgen.ir.barriers import BarrierArray, ExpectBytes, FenceBarriers, InitBarrier, WaitBarrier
from gemmgen.ir.box_stores import AwaitBoxes, CommitBoxes, FenceAsync
from gemmgen.ir.buffers import Space
from gemmgen.ir.control import Assign, Barrier, Block, Break, Commit, Define, For, If, Wait
from gemmgen.ir.dependent_launch import LaunchDependents
from gemmgen.ir.duties import Duties, NamedBarrier, SetRegisters
from gemmgen.ir.expr import Element, Expr
from gemmgen.ir.nodes import Copy, Init, Kernel, Map
from gemmgen.schedule.extents import Shape

What = Literal[
    "load",
    "store",
    "copy",
    "commit",
    "wait",
    "barrier",
    "read",
    "multiply",
    "reduce",
    "write",
    "expect",
    "await",
    "release",
]
"""``load``: global memory to registers; ``store``: registers to a stage in shared memory; ``copy``:
an asynchronous copy between the two; ``read``: shared memory to registers; ``reduce``: sums of
other lanes or blocks are added; ``write``: C.  Of a barrier in shared memory, ``expect``: copies
are announced to it; ``await``: a phase of it has ended; ``release``: its stage is read no more."""


@record
class BlockStep:
    """``operand`` is a tensor's name.  ``tile`` counts steps along k, ``k`` is the element along k
    within the tile, None for a whole tile; ``stage`` is that of the shared tile or the slot of the
    fragments.  At most ``pending`` groups are left in flight by a ``wait``.  ``empty``: the tile
    lies behind the last one, so nothing is moved.

    ``duty`` names the warps that take it, if they have a program of their own.  ``barrier`` is the
    array in shared memory with a barrier for each stage, ``phase`` the one that is announced, or
    counts the copy, or has been waited for (-1: the one before the first, ended from the start), or
    is arrived at.
    """

    what: What
    operand: str = ""
    tile: int = 0
    k: int | None = None
    stage: int | None = None
    pending: int = 0
    empty: bool = False
    duty: str = ""
    barrier: str = ""
    phase: int = 0


def shape_of_steps(kernel: AnalyzedKernel, tiles: int) -> Shape:
    """A shape of one tile of C, for which block 0 takes at least ``tiles`` steps along k."""
    return whole_tiles(kernel, tiles)


def block_steps(kernel: AnalyzedKernel, tiles: int, sums: int = 1) -> tuple[BlockStep, ...]:
    """The steps of block 0 over ``tiles`` tiles along k, or as many as the schedule's assumptions
    about K need; for each of the ``sums``, tiles of C, that a persistent block walks over."""
    shape = shape_of_steps(kernel, tiles)
    values = arguments_of(kernel.lowered.interface, kernel.program.problem, shape)
    integers = {name: value for name, value in values.items() if isinstance(value, int)}
    (block,) = expand(kernel.program).kernels
    walk = _Walk(kernel, integers, sums)
    return tuple(walk.of(block.body))


class _Break(Exception):
    """Leaves the innermost loop."""


OTHERS = BlockStep("barrier", "others")
"""Not a step: the block's other duties go on."""


Content = tuple[int, int | None]
"""A tile, and the element along k within it; None for all of it."""


class _Walk:
    """Runs the body of block 0; ``holds`` is what is in each stage and slot, ``phases`` how many
    phases of each barrier have ended.  The walks of a block's duties have both in common."""

    def __init__(self, kernel: AnalyzedKernel, values: Mapping[str, int], sums: int):
        self.kernel: Kernel = kernel.program.main
        self.problem, self.step = kernel.program.problem, k_step(kernel)
        self.names = {c.name: c.value for c in kernel.lowered.constants} | dict(values)
        self.end = values[kernel.lowered.interface.extent(self.problem.k)]
        if self.kernel.work.parts > 1:
            self.end //= self.kernel.work.parts
            self.names |= {names.start(self.problem.k).name: 0}
            self.names |= {names.stop(self.problem.k).name: self.end}
        self.holds: dict[tuple[str, int], Content] = {}
        self.loaded: dict[str, int] = {}
        self.phases = Counter[tuple[str, int]]()
        self.duty = ""
        self.sums, self.first = sums, 0
        """Of the tile of C at hand the first step, counted over all of them."""

    def value(self, expr: Expr) -> int:
        scope = Scope()
        for name, number in self.names.items():
            scope.bind(name, known(number, "int"))
        return int(cast(int, compile_expression(expr, scope).known))

    def stage(self, expr: Expr | None) -> int:
        return 0 if expr is None else self.value(expr)

    def of(self, body: tuple[expanded.Timed, ...]) -> Iterator[BlockStep]:
        for node in body:
            yield from self.node(node)

    def node(self, node: expanded.Timed) -> Iterator[BlockStep]:
        match node:
            case Block():
                yield from self.of(node.body)
            case expanded.Tiles(body, _, before):
                yield from self.of(before)
                for number in range(self.sums):
                    self.first = number * -(-self.end // self.step)
                    yield from self.of(body)
            case Define(name, value) | Assign(str(name), value):
                self.names[name] = self.value(value)
            case For():
                yield from self.loop(node)
            case If():
                yield from self.of(node.body if self.value(node.condition) else node.otherwise)
            case Break(condition):
                if self.value(condition):
                    raise _Break
            case Barrier() | NamedBarrier():
                yield BlockStep("barrier")
            case Commit():
                yield BlockStep("commit")
            case Wait(pending):
                yield BlockStep("wait", pending=self.value(pending))
            case expanded.OneThread(inner, condition):
                if condition is None or self.value(condition):
                    yield from self.of(inner)
            case expanded.CopyBox(copy, origin, barrier, stage):
                begun = self.store("copy", copy, self.tile(origin), stage)
                name, number = self.barrier(barrier)
                yield replace(begun, barrier=name, phase=self.phases[name, number] - 1)
            case Duties():
                yield from self.duties(node)
            case WaitBarrier(barrier, parity):
                yield from self.awaited(barrier, parity)
            case ExpectBytes(barrier):
                yield self.arrival("expect", barrier)
            case expanded.Release(barrier):
                yield self.arrival("release", barrier)
                yield OTHERS
            case (
                Init()
                | BarrierArray()
                | InitBarrier()
                | FenceBarriers()
                | SetRegisters()
                | LaunchDependents()
                | FenceAsync()
                | CommitBoxes()
                | AwaitBoxes()
            ):
                pass
            case _:
                yield from self.operation(node)

    def operation(self, node: expanded.Timed) -> Iterator[BlockStep]:
        """What moves elements, or computes with them."""
        match node:
            case Map() | expanded.StoreSlice() | expanded.StoreBoxes():
                yield BlockStep("write", self.problem.c.name)
            case expanded.StageSlice():
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
            case expanded.StorePartial():
                yield BlockStep("write", "workspace")
            case expanded.WarpReduce() | expanded.ReducePartials():
                yield BlockStep("reduce")
            case _:
                assert isinstance(node, expanded.Arrive), node

    def duties(self, node: Duties[expanded.Timed]) -> Iterator[BlockStep]:
        """Each duty until it has to wait for another, or has something for it."""
        left: list[tuple[str, Iterator[BlockStep]]] = []
        for duty in node.duties:
            walk = copy_of(self)
            walk.names, walk.duty = dict(self.names), duty.name
            left.append((duty.name, walk.of(duty.body)))
        while left:
            for one in tuple(left):
                name, steps = one
                for step in steps:
                    if step == OTHERS:
                        break
                    yield replace(step, duty=name)
                else:
                    left.remove(one)

    def awaited(self, barrier: Element, parity: Expr) -> Iterator[BlockStep]:
        """Others go on until the phase of ``barrier`` with this parity has ended."""
        at, wanted = self.barrier(barrier), self.value(parity)
        while self.duty and self.phases[at] % 2 == wanted:
            yield OTHERS
        name, number = at
        yield BlockStep("await", stage=number, barrier=name, phase=self.phases[at] - 1)

    def arrival(self, what: Literal["expect", "release"], barrier: Element) -> BlockStep:
        """What the present phase of ``barrier`` lacks: copies that it expects are on their way."""
        name, number = self.barrier(barrier)
        self.phases[name, number] += 1
        return BlockStep(what, stage=number, barrier=name, phase=self.phases[name, number] - 1)

    def barrier(self, barrier: Element) -> tuple[str, int]:
        (index,) = barrier.indices
        return barrier.buffer, self.value(index)

    def loop(self, node: For[expanded.Timed]) -> Iterator[BlockStep]:
        at, by = self.value(node.start), self.value(node.step)
        try:
            while at < self.value(node.stop):
                self.names[node.variable] = at
                yield from self.of(node.body)
                at += by
        except _Break:
            pass

    def copy(
        self,
        node: expanded.Load | expanded.Store | expanded.Transfer | expanded.CopyTileAsync,
    ) -> Iterator[BlockStep]:
        """A tile on its way to shared memory."""
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
        """``direct``: to the registers in which it is multiplied."""
        tile = self.loaded[copy.src] = self.tile(origin)
        if direct:
            self.holds[copy.dst, 0] = tile, None
        return BlockStep("load", copy.src, tile, empty=self.is_behind(tile))

    def store(
        self, what: Literal["store", "copy"], copy: Copy, tile: int, stage: Expr | None
    ) -> BlockStep:
        at = self.stage(stage)
        self.holds[copy.dst, at] = tile, None
        return BlockStep(what, copy.src, tile, None, at, empty=self.is_behind(tile))

    def is_behind(self, tile: int) -> bool:
        return (tile - self.first) * self.step >= self.end

    def fetch(self, node: expanded.Fetch) -> Iterator[BlockStep]:
        copy, slot, k = node.copy, self.stage(node.slot), self.value(node.k)
        if self.kernel.buffer(copy.src).space is Space.GLOBAL:
            held = self.position(k, node.origin)
            yield BlockStep("load", copy.src, *held, slot)
        else:
            held = self.in_stage(copy.src, node.stage, k)
            operand, empty = copy.src.removesuffix("_shared"), self.is_behind(held[0])
            yield BlockStep("read", operand, *held, slot, empty=empty)
        self.holds[copy.dst, slot] = held

    def multiply(self, node: expanded.Multiply) -> Iterator[BlockStep]:
        """What is not in registers is read by the multiplication itself."""
        k, held = self.value(node.k), list[Content]()
        for name, stage in ((node.contract.a, node.a_stage), (node.contract.b, node.b_stage)):
            match self.kernel.buffer(name).space:
                case Space.GLOBAL:
                    held.append(self.position(k, node.origin))
                    yield BlockStep("load", name, *held[-1])
                case Space.SHARED:
                    held.append(self.in_stage(name, stage, k))
                    yield BlockStep("read", name.removesuffix("_shared"), *held[-1])
                case Space.REGISTER:
                    held.append(self.holds[name, self.stage(stage)])
        assert held[0] == held[1], "A and B are of different steps"
        yield BlockStep("multiply", "", *held[0])

    def position(self, k: int, origin: Expr | None) -> Content:
        """Of an element of a global operand: ``k`` counts from ``origin``, or else from 0."""
        tile, within = divmod(k, self.step) if origin is None else (self.tile(origin), k)
        return tile, self.within(within)

    def in_stage(self, tile: str, stage: Expr | None, k: int) -> Content:
        """What ``k`` is of the tile that a stage holds."""
        return self.holds[tile, self.stage(stage)][0], self.within(k)

    def within(self, k: int) -> int | None:
        return None if self.step == 1 else k
