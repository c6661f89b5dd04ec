"""The steps of a block in the order in which its expanded program takes them.

The program's loops, conditions, roles and barriers are run on integers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from copy import copy as copy_of
from dataclasses import replace
from typing import Literal

from gemmgen.analyze.analyzed_kernel import AnalyzedKernel
from gemmgen.analyze.block_contents import BlockContents
from gemmgen.analyze.block_step import OTHERS, PINGPONG, BlockStep
from gemmgen.analyze.launch_arguments import arguments_of
from gemmgen.analyze.whole_tiles import whole_tiles
from gemmgen.ir import expanded
from gemmgen.ir.barriers import BarrierArray
from gemmgen.ir.control import AdvanceRing, Assign, Block, Break, Define, For, If
from gemmgen.ir.expr import Element, Expr
from gemmgen.ir.instruction import Instruction
from gemmgen.ir.launch_shape import Shape
from gemmgen.ir.nodes import Init
from gemmgen.ir.warp_roles import WarpRoles
from gemmgen.pipeline import expand


def shape_of_steps(kernel: AnalyzedKernel, tiles: int) -> Shape:
    """A shape of one tile of C, with at least ``tiles`` steps along k for block 0."""
    return whole_tiles(kernel, tiles)


def block_steps(kernel: AnalyzedKernel, tiles: int, outputs: int = 1) -> tuple[BlockStep, ...]:
    """The steps of block 0 over ``tiles`` tiles along k, or as many as the schedule's assumptions
    about K need; for each of the ``outputs``, tiles of C, that a persistent block walks
    over."""
    shape = shape_of_steps(kernel, tiles)
    values = arguments_of(kernel.lowered.interface, kernel.program.problem, shape)
    integers = {name: value for name, value in values.items() if isinstance(value, int)}
    (block,) = expand(kernel.program).kernels
    walk = _Walk(kernel, integers, outputs)
    return tuple(walk.of(block.body))


class _Break(Exception):
    """Leaves the innermost loop."""


class _Walk(BlockContents):
    """Runs the body of block 0; ``phases`` is how many phases of each barrier have ended.  The
    walks of a block's roles have these and the contents in common."""

    def __init__(self, kernel: AnalyzedKernel, values: Mapping[str, int], outputs: int):
        super().__init__(kernel, values)
        self.phases = Counter[tuple[str, int]]()
        self.role, self.group, self.outputs = "", 0, outputs

    def of(self, body: tuple[expanded.Timed, ...]) -> Iterator[BlockStep]:
        for node in body:
            yield from self.node(node)

    def node(self, node: expanded.Timed) -> Iterator[BlockStep]:
        match node:
            case Block():
                yield from self.of(node.body)
            case expanded.Tiles(body, _, before, pingpong):
                yield from self.of(before)
                for number in range(self.group, self.outputs, pingpong):
                    self.first = number * -(-self.end // self.step)
                    yield from self.of(body)
            case Define(name, value) | Assign(str(name), value):
                self.names[name] = self.value(value)
            case AdvanceRing():
                yield from self.of(node.assignments)
            case For():
                yield from self.loop(node)
            case If():
                yield from self.of(node.body if self.value(node.condition) else node.otherwise)
            case Break(condition):
                if self.value(condition):
                    raise _Break
            case Instruction():
                yield from self.instruction(node)
            case expanded.OneThread(inner, condition):
                if condition is None or self.value(condition):
                    yield from self.of(inner)
            case expanded.CopyBox(copy, origin, barrier, stage):
                begun = self.store("copy", copy, self.tile(origin), stage)
                name, number = self.barrier(barrier)
                yield replace(begun, barrier=name, phase=self.phases[name, number] - 1)
            case WarpRoles():
                yield from self.roles(node)
            case expanded.Release(barrier):
                yield self.arrival("release", barrier)
                yield OTHERS
            case Init() | BarrierArray():
                pass
            case _:
                yield from self.operation(node)

    def instruction(self, node: Instruction) -> Iterator[BlockStep]:
        """What the block's threads wait for, and the groups of its copies to shared memory."""
        match node:
            case Instruction("commit_group"):
                yield BlockStep("commit")
            case Instruction("wait_group", (pending,)):
                yield BlockStep("wait", pending=self.value(pending))
            case Instruction("try_wait", (Element() as barrier, parity)):
                yield from self.awaited(barrier, parity)
            case Instruction("expect_bytes", (Element() as barrier, _)):
                yield self.arrival("expect", barrier)
            case _ if node.row.effect == "barrier":
                yield BlockStep("barrier")
            case _:
                pass

    def roles(self, node: WarpRoles[expanded.Timed]) -> Iterator[BlockStep]:
        """Run each role until it waits for another role or releases something to it."""
        left: list[tuple[str, Iterator[BlockStep]]] = []
        for role in node.roles:
            for group, (first, _) in enumerate(role.parts):
                walk = copy_of(self)
                walk.names, walk.group = self.names | {"threadIdx.x": first}, group
                walk.role = role.name if role.groups == 1 else PINGPONG[group]
                left.append((walk.role, walk.of(role.body)))
        while left:
            for one in tuple(left):
                name, steps = one
                for step in steps:
                    if step == OTHERS:
                        break
                    yield replace(step, role=name)
                else:
                    left.remove(one)

    def awaited(self, barrier: Element, parity: Expr) -> Iterator[BlockStep]:
        """Run the other roles until the phase of ``barrier`` with this parity has ended."""
        at, wanted = self.barrier(barrier), self.value(parity)
        while self.role and self.phases[at] % 2 == wanted:
            yield OTHERS
        name, number = at
        yield BlockStep("await", stage=number, barrier=name, phase=self.phases[at] - 1)

    def arrival(self, what: Literal["expect", "release"], barrier: Element) -> BlockStep:
        """The arrivals that the current phase of ``barrier`` still needs; copies that it expects
        are in flight."""
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
