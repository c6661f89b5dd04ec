"""Statements of lowered code compiled to closures, and what runs them: one machine for some blocks.

Each statement is done by all threads before the next one begins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from math import prod
from typing import cast

import numpy as np

from gemmgen.interpreter.async_copies import Copies, Landing
from gemmgen.interpreter.evaluate import ARITHMETIC, COMPARE, Ints, Value, invert
from gemmgen.interpreter.expressions import (
    KINDS,
    Array,
    Compiled,
    Run,
    Scope,
    Slot,
    advance,
    compile_element,
    compile_expression,
    converted,
    is_empty,
    known,
    narrowed,
    point,
    where,
)
from gemmgen.interpreter.fragments import Warps
from gemmgen.interpreter.memory import (
    Elements,
    FlatMemory,
    Index,
    Lanes,
    Mask,
    OutputMemory,
    Registers,
    Trap,
    poisoned,
)
from gemmgen.interpreter.workspace import Counters, Sharing, Workspace
from gemmgen.ir.control import Assign, Barrier, Block, Break, Commit, Define, For, If, Wait
from gemmgen.ir.expr import Element
from gemmgen.ir.interface import Interface, Param
from gemmgen.ir.lowered import (
    Advance,
    AtomicAdd,
    CopyAsync,
    CountArrival,
    FragmentArray,
    Leave,
    LoadFragment,
    LoweredKernel,
    Move,
    MultiplyFragments,
    Node,
    Point,
    RegisterArray,
    StoreFragment,
    WarpBarrier,
    contains,
)

Argument = Elements | int | float
Step = Callable[[Mask], None]

less, plus = COMPARE["<"], ARITHMETIC["+"]


class Machine:
    """A kernel compiled for some of its blocks, which run side by side."""

    def __init__(
        self,
        kernel: LoweredKernel,
        lanes: Lanes,
        arguments: Mapping[str, Argument],
        written: dict[str, Ints],
        sharing: Sharing,
        landing: Landing = "late",
    ):
        self.lanes, self.scope = lanes, Scope()
        self.alive: Mask = None
        self.copies = Copies(landing)
        self.warps = Warps(lanes, self.scope)
        scope = self.scope
        for name, value in lanes.builtins().items():
            scope.bind(name, known(value, "int"))
        for name, meaning in _parameters(kernel.interface, lanes, arguments, written):
            scope.bind(name, meaning)
        for param in kernel.interface.scratch:
            scope.bind(param.name, Array(sharing.memory(param, lanes), None))
        for constant in kernel.constants:
            scope.bind(constant.name, known(constant.value, "int"))
            if constant.definition is not None:
                computed = compile_expression(constant.definition, scope).known
                assert (
                    computed == constant.value
                ), f"{constant.name} is {computed} by its definition"
        for shared in kernel.shared:
            data = poisoned(lanes.blocks * prod(shared.sizes), shared.dtype)
            memory = FlatMemory(shared.name, data, lanes, per_block=True)
            scope.bind(shared.name, Array(memory, shared.sizes))
        self.body = self.sequence(kernel.body)

    def run(self) -> None:
        self.body(None)
        self.copies.end()

    def braces(self, body: tuple[Node, ...]) -> Step:
        """``body`` with names of its own."""
        self.scope.enter()
        step = self.sequence(body)
        self.scope.leave()
        return step

    def sequence(self, body: tuple[Node, ...]) -> Step:
        steps = [self.node(node) for node in body]
        if len(steps) == 1:
            return steps[0]
        if contains(body, Leave) or contains(body, Break):
            return lambda mask: self.run_alive(steps, mask)

        def run(mask: Mask) -> None:
            for step in steps:
                step(mask)

        return run

    def run_alive(self, steps: list[Step], mask: Mask) -> None:
        """Steps in which threads may leave for good."""
        for step in steps:
            active = mask if self.alive is None else narrowed(mask, self.alive)
            if is_empty(active):
                return
            step(active)

    def node(self, node: Node) -> Step:
        match node:
            case Block():
                return self.braces(node.body) if node.scoped else self.sequence(node.body)
            case RegisterArray():
                return self.register_array(node)
            case Define():
                return self.define(node)
            case Assign(target, value):
                return self.assign(target, compile_expression(value, self.scope))
            case Move():
                return self.move(node)
            case For():
                return self.loop(node)
            case If():
                return self.branch(node)
            case Leave(condition) | Break(condition):
                return self.departure(compile_expression(condition, self.scope).run)
            case Advance(tensor, by):
                return self.settle(*advance(tensor, by, self.scope))
            case Point():
                return self.settle(*point(node, self.scope))
            case Barrier():
                return self.barrier
            case CountArrival():
                return self.count_arrival(node)
            case AtomicAdd(target, value):
                return self.atomic_add(target, compile_expression(value, self.scope))
            case CopyAsync():
                return self.copy_async(node)
            case Commit():
                return self.copies.commit
            case Wait(pending):
                return partial(self.copies.wait, pending)
            case FragmentArray():
                return self.warps.array(node)
            case LoadFragment():
                return self.warps.load(node)
            case MultiplyFragments():
                return self.warps.multiply(node)
            case StoreFragment():
                return self.warps.store(node)
            case WarpBarrier():
                return self.warps.meet

    def register_array(self, node: RegisterArray) -> Step:
        size = int(np.prod(node.sizes))
        zero, wide = node.zero, node.wide
        memory = Registers(node.name, size, self.lanes, zero=zero, wide=wide, dtype=node.dtype)
        self.scope.bind(node.name, Array(memory, node.sizes))
        return lambda _: memory.declare()

    def define(self, node: Define) -> Step:
        value = compile_expression(node.value, self.scope)
        run = converted(value, node.kind).run
        frame, place = self.scope.frame, self.scope.variable(node.name, node.kind).place

        def step(mask: Mask) -> None:
            frame[place] = _own(run(mask))

        return step

    def settle(self, slot: Slot, run: Run) -> Step:
        """A pointer's place, computed where the statement is reached."""
        frame, place = self.scope.frame, slot.place

        def step(mask: Mask) -> None:
            frame[place] = _own(run(mask))

        return step

    def assign(self, target: Element | str, value: Compiled) -> Step:
        if isinstance(target, str):
            return self.assign_variable(target, value)
        memory, index = compile_element(target.buffer, target.indices, self.scope)
        run = converted(value, KINDS[memory.data.dtype.type]).run
        store = memory.store

        def step(mask: Mask) -> None:
            store(cast(Index, index(mask)), cast(Elements, run(mask)), mask)

        return step

    def assign_variable(self, name: str, value: Compiled) -> Step:
        slot = self.scope.find(name)
        assert not isinstance(slot, Array | Compiled), f"{name} is no variable"
        run = converted(value, slot.kind).run
        frame, place = self.scope.frame, slot.place

        def step(mask: Mask) -> None:
            new = run(mask)
            frame[place] = _own(new) if mask is None else np.where(mask, new, frame[place])

        return step

    def move(self, node: Move) -> Step:
        target, target_index = compile_element(node.target.buffer, node.target.indices, self.scope)
        source, source_index = compile_element(node.source.buffer, node.source.indices, self.scope)
        width = node.width

        def step(mask: Mask) -> None:
            to, at = cast(Index, target_index(mask)), cast(Index, source_index(mask))
            target.check_aligned(to, width, mask)
            source.check_aligned(at, width, mask)
            for e in range(width):
                target.store(to + e, source.load(at + e, mask), mask)

        return step

    def loop(self, node: For[Node]) -> Step:
        start, stop, by = (
            compile_expression(e, self.scope).run for e in (node.start, node.stop, node.step)
        )
        self.scope.enter()
        place = self.scope.variable(node.variable, "int").place
        body = self.braces(node.body)
        self.scope.leave()
        frame = self.scope.frame

        def steps(mask: Mask) -> None:
            at = start(mask)
            while True:
                going, active = where(less(at, stop(mask)), mask)
                if going and self.alive is not None:
                    going, active = where(self.alive, active)
                if not going:
                    return
                frame[place] = at
                body(active)
                at = plus(at, by(mask))

        def until_broken(mask: Mask) -> None:
            alive = self.alive
            steps(mask)
            self.alive = alive

        return until_broken if breaks(node) else steps

    def branch(self, node: If[Node]) -> Step:
        condition = compile_expression(node.condition, self.scope).run
        body, otherwise = self.braces(node.body), self.braces(node.otherwise)

        def step(mask: Mask) -> None:
            holds = condition(mask)
            some, on = where(holds, mask)
            others, off = where(invert(holds), mask)
            if some:
                body(on)
            if others:
                otherwise(off)

        return step

    def departure(self, condition: Run) -> Step:
        def step(mask: Mask) -> None:
            stays = np.broadcast_to(np.asarray(invert(condition(mask))), self.lanes.count)
            if mask is not None:
                stays = stays | ~mask
            self.alive = narrowed(self.alive, stays)

        return step

    def count_arrival(self, node: CountArrival) -> Step:
        chosen = compile_expression(node.chosen, self.scope).run
        counters, index = compile_element(node.counter.buffer, node.counter.indices, self.scope)
        last = compile_expression(node.last, self.scope).run
        assert isinstance(counters, Counters)
        frame, place = self.scope.frame, self.scope.variable(node.name, "bool").place

        def step(mask: Mask) -> None:
            self.barrier(mask)
            every = np.broadcast_to(np.asarray(chosen(mask), np.bool_), self.lanes.count)
            ones = every if mask is None else every & mask
            frame[place] = counters.count(cast(Index, index(mask)), cast(int, last(mask)), ones)

        return step

    def atomic_add(self, target: Element, value: Compiled) -> Step:
        memory, index = compile_element(target.buffer, target.indices, self.scope)
        run = converted(value, KINDS[memory.data.dtype.type]).run
        assert isinstance(memory, Workspace)

        def step(mask: Mask) -> None:
            memory.add(cast(Index, index(mask)), cast(Elements, run(mask)), mask)

        return step

    def copy_async(self, node: CopyAsync) -> Step:
        target, target_index = compile_element(node.target.buffer, node.target.indices, self.scope)
        source, source_index = compile_element(node.source.buffer, node.source.indices, self.scope)
        count, width = compile_expression(node.valid, self.scope).run, node.width

        def step(mask: Mask) -> None:
            to, at = cast(Index, target_index(mask)), cast(Index, source_index(mask))
            valid = count(mask)
            target.check_aligned(to, width, mask)
            source.check_aligned(at, width, mask)
            for e in range(width):
                value = np.zeros(self.lanes.count, target.data.dtype)
                some, there = where(less(e, valid), mask)
                if some:
                    loaded = cast(Elements, source.load(at + e, there))
                    value = np.where(True if there is None else there, loaded, value)
                self.copies.issue(target, to + e, value, mask)

        return step

    def barrier(self, mask: Mask) -> None:
        """All threads of a block come to it, or none."""
        if mask is None:
            return
        arrived = mask.reshape(self.lanes.blocks, self.lanes.threads)
        apart = arrived.any(axis=1) & ~arrived.all(axis=1)
        if apart.any():
            block = int(np.argmax(apart))
            missing = int(np.argmin(arrived[block])) + block * self.lanes.threads
            name = self.lanes.name(missing)
            raise Trap("barrier", name, 0, "not all threads of the block come to it, it is missed")


def breaks(loop: For[Node]) -> bool:
    """May threads leave this loop before its end?  They rest until all are done with it."""
    return any(isinstance(node, Break) for node in loop.body)


def _own(value: Value) -> Value:
    """A variable's own copy: registers are read as views, which later stores would change."""
    return value.copy() if isinstance(value, np.ndarray) else value


def _scalar(param: Param, value: float) -> Compiled:
    if param.dtype == "f64":
        return known(np.float64(value), "double")
    return known(np.float32(value), "float")


def _parameters(
    interface: Interface, lanes: Lanes, arguments: Mapping[str, Argument], written: dict[str, Ints]
) -> Iterable[tuple[str, Compiled | Array]]:
    for param in interface.params:
        if param.is_scratch:
            continue
        value = arguments[param.name]
        if isinstance(value, np.ndarray):
            tensor = (
                OutputMemory(param.name, value, lanes, written[param.name])
                if param.written
                else FlatMemory(param.name, value, lanes)
            )
            yield param.name, Array(tensor, None)
        elif param.kind == "scalar":
            yield param.name, _scalar(param, value)
        else:
            yield param.name, known(int(value), "int")
