"""One thread's code walked for its memory accesses alone, by all threads of chosen blocks.

Sums and fragments are never computed: addresses and guards depend on integers, so what remains of a
kernel is its index arithmetic.  No memory is needed either, which makes any shape possible.  A
``where`` of an epilogue that asks for such a float (``where(acc > 0, bias[n], 0)``) is taken to
read both of its sides, as some threads of a warp will.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from math import lcm
from typing import cast

import numpy as np

from gemmgen.analyze.fragments import REGISTERS, places_of
from gemmgen.analyze.sites import ZERO, See, Site, Space, Watched, both_sides
from gemmgen.analyze.trips import Trips, every_trip, inductions
from gemmgen.interpreter.evaluate import COMPARE, Ints, Value, invert
from gemmgen.interpreter.expressions import (
    NUMBERS,
    Array,
    Compiled,
    Run,
    Scope,
    Slot,
    advance,
    compile_element,
    compile_expression,
    is_empty,
    known,
    narrowed,
    point,
    where,
)
from gemmgen.interpreter.memory import Index, Lanes, Mask
from gemmgen.interpreter.statements import breaks
from gemmgen.ir.control import Assign, Barrier, Block, Break, Commit, Define, For, If, Wait
from gemmgen.ir.dtypes import BYTES, DType
from gemmgen.ir.expr import Element, Expr, Var
from gemmgen.ir.expr import walk as parts_of
from gemmgen.ir.interface import Param
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
)
from gemmgen.ir.target import WARP
from gemmgen.lower.split import LAST_OF_GROUP, PART

Step = Callable[[Mask], None]

less = COMPARE["<"]


class Walk:
    """The accesses of some blocks of ``kernel``: ``run`` shows them to ``see`` in program order.

    ``blocks`` are numbers of blocks, in any order; ``values`` the kernel's integers and scalars by
    name; ``trips`` makes the trips of loops; ``barrier`` is called where the compiler keeps reads
    before it from those after it: at barriers, asynchronous copies, and the ends of trips of loops
    that have some, or are unrolled in part.
    """

    def __init__(
        self,
        kernel: LoweredKernel,
        blocks: Ints,
        values: Mapping[str, int | float],
        see: See,
        trips: Trips = every_trip,
        barrier: Callable[[], None] = lambda: None,
    ):
        x, y = kernel.interface.block
        self.lanes = Lanes(0, len(blocks), x, y)
        self.see, self.trips, self.barrier, self.scope = see, trips, barrier, Scope()
        self.alive: Mask = None
        self.block = Block("", (), ())
        self.stages = lcm(*(s.sizes[0] for s in kernel.shared if len(s.sizes) == 3))
        self.memories: dict[str, tuple[Space, tuple[int, ...] | None, DType]] = {}
        self.firsts: dict[str, Slot] = {}
        """Where pointers that were moved point."""
        self.tensors: dict[str, str] = {}
        """Into which tensors other pointers point."""
        builtins = self.lanes.builtins()
        builtins["blockIdx.x"] = np.repeat(blocks, x * y) if len(blocks) > 1 else int(blocks[0])
        self.parts = kernel.interface.parts
        for name, value in builtins.items():
            self.scope.bind(name, known(value, "int"))
        for param in kernel.interface.params:
            if param.kind == "tensor" or param.is_scratch:
                self.memories[param.name] = ("global", None, param.dtype)
            else:
                self.scope.bind(param.name, _argument(param, values[param.name]))
        for constant in kernel.constants:
            self.scope.bind(constant.name, known(constant.value, "int"))
        for shared in kernel.shared:
            self.memories[shared.name] = ("shared", shared.sizes, shared.dtype)
        self.watch()
        self.body = self.sequence(kernel.body)

    def run(self) -> None:
        if self.body is not None:
            self.body(None)
        self.barrier()

    def watch(self) -> None:
        """Reads in the expressions that follow belong to the present comment."""
        for name, (_, sizes, _) in self.memories.items():
            site = self.site(name, write=False, width=1)
            watched = Watched(name, self.lanes, site, self.see)
            self.scope.names[0][name] = Array(watched, sizes, self.firsts.get(name))

    def site(self, name: str, *, write: bool, width: int) -> Site:
        space, _, dtype = self.memories[name]
        note, origins = self.block.note, self.block.origins
        return Site(self.tensors.get(name, name), space, write, width, note, origins, BYTES[dtype])

    def reads(self, expr: Expr) -> bool:
        return any(isinstance(e, Element) and e.buffer in self.memories for e in parts_of(expr))

    def is_data(self, expr: Expr) -> bool:
        """Is this a float that the walk does not compute?"""
        if not isinstance(expr, Var):
            return isinstance(expr, Element)
        found = self.scope.find(expr.name)
        return isinstance(found, Slot) and found.kind in NUMBERS

    def sequence(self, body: tuple[Node, ...]) -> Step | None:
        steps = [step for node in body if (step := self.node(node)) is not None]
        if len(steps) == 1:
            return steps[0]

        def run(mask: Mask) -> None:
            for step in steps:
                active = mask if self.alive is None else narrowed(mask, self.alive)
                if is_empty(active):
                    return
                step(active)

        return run if steps else None

    def braces(self, body: tuple[Node, ...]) -> Step | None:
        self.scope.enter()
        step = self.sequence(body)
        self.scope.leave()
        return step

    def node(self, node: Node) -> Step | None:
        """What ``node`` does for addresses; None for nothing."""
        match node:
            case Block():
                return self.commented(node)
            case Advance(tensor, by):
                return self.advance(tensor, by)
            case Point():
                return self.point(node)
            case RegisterArray():
                silent = Watched(node.name, self.lanes, None, self.see)
                self.scope.bind(node.name, Array(silent, node.sizes))
                return None
            case Define():
                return self.define(node)
            case Assign(target, value):
                return self.assign(target, value)
            case Move():
                return self.move(node)
            case For():
                return self.loop(node)
            case If():
                return self.branch(node)
            case Leave(condition) | Break(condition):
                return self.departure(compile_expression(condition, self.scope).run)
            case CopyAsync():
                return self.copy_async(node)
            case CountArrival():
                return self.count_arrival(node)
            case AtomicAdd(target):
                return self.access(target, write=True, width=1)
            case FragmentArray():
                silent = Watched(node.name, self.lanes, None, self.see)
                self.scope.bind(node.name, Array(silent, (*node.sizes, REGISTERS)))
                return None
            case LoadFragment() | StoreFragment():
                return self.fragment(node)
            case Barrier() | Commit() | Wait():
                return lambda _: self.barrier()
            case MultiplyFragments() | WarpBarrier():
                return None

    def commented(self, node: Block[Node]) -> Step | None:
        outer = self.block
        if node.note:
            self.block = node
            self.watch()
        step = self.braces(node.body) if node.scoped else self.sequence(node.body)
        if node.note:
            self.block = outer
            self.watch()
        return step

    def advance(self, tensor: str, by: Expr) -> Step:
        slot, run = advance(tensor, by, self.scope)
        self.firsts[tensor] = slot
        frame, place = self.scope.frame, slot.place

        def step(mask: Mask) -> None:
            frame[place] = run(mask)

        return step

    def point(self, node: Point) -> Step:
        slot, run = point(node, self.scope)
        self.tensors[node.name] = node.source.buffer
        self.memories[node.name] = self.memories[node.source.buffer]
        frame, place = self.scope.frame, slot.place

        def step(mask: Mask) -> None:
            frame[place] = run(mask)

        return step

    def define(self, node: Define) -> Step | None:
        if node.kind in NUMBERS:
            look = self.look(node.value)
            self.scope.frame[self.scope.variable(node.name, node.kind).place] = ZERO
            return look
        run = compile_expression(node.value, self.scope).run
        frame, place = self.scope.frame, self.scope.variable(node.name, node.kind).place

        def step(mask: Mask) -> None:
            frame[place] = run(mask)

        return step

    def look(self, value: Expr) -> Step | None:
        """The reads of memory that computing ``value`` takes."""
        if not self.reads(value):
            return None
        run = compile_expression(both_sides(value, self.is_data), self.scope).run

        def step(mask: Mask) -> None:
            run(mask)

        return step

    def assign(self, target: Element | str, value: Expr) -> Step | None:
        look = self.look(value)
        if isinstance(target, str):
            slot = self.scope.find(target)
            assert not isinstance(slot, Array | Compiled), f"{target} is no variable"
            if slot.kind in NUMBERS:
                return look
            run = compile_expression(value, self.scope).run
            frame, place = self.scope.frame, slot.place

            def step(mask: Mask) -> None:
                new = run(mask)
                frame[place] = new if mask is None else np.where(mask, new, frame[place])

            return step
        if target.buffer not in self.memories:
            return look
        store = self.access(target, write=True, width=1)

        def both(mask: Mask) -> None:
            if look is not None:
                look(mask)
            store(mask)

        return both

    def access(self, element: Element, *, write: bool, width: int) -> Step:
        site, see = self.site(element.buffer, write=write, width=width), self.see
        _, index = compile_element(element.buffer, element.indices, self.scope)

        def step(mask: Mask) -> None:
            see(site, cast(Index, index(mask)), mask)

        return step

    def fragment(self, node: LoadFragment | StoreFragment) -> Step:
        write = isinstance(node, StoreFragment)
        element = node.target if write else node.source
        places, width = places_of(node)
        site = replace(self.site(element.buffer, write=write, width=width), fragment=True)
        see = self.see
        _, index = compile_element(element.buffer, element.indices, self.scope)
        pitch = compile_expression(node.pitch, self.scope).run
        lane = np.arange(self.lanes.count) % WARP

        def step(mask: Mask) -> None:
            first, apart = cast(Index, index(mask)), cast(int, pitch(mask))
            for line, within in places:
                see(site, first + line[lane] * apart + within[lane], mask)

        return step

    def move(self, node: Move) -> Step | None:
        sides = [
            self.access(element, write=write, width=node.width)
            for element, write in ((node.source, False), (node.target, True))
            if element.buffer in self.memories
        ]
        if len(sides) == 1:
            return sides[0]

        def step(mask: Mask) -> None:
            for side in sides:
                side(mask)

        return step if sides else None

    def count_arrival(self, node: CountArrival) -> Step:
        """Which of a tile's blocks comes last is the same to all counts: it is taken to be the one
        with the last part, of a group that with the group's last."""
        write = self.access(node.counter, write=True, width=1)
        chosen = compile_expression(node.chosen, self.scope).run
        last = compile_expression(node.last, self.scope).run
        part = compile_expression(PART, self.scope).run
        frame, place = self.scope.frame, self.scope.variable(node.name, "bool").place
        sharers = None if node.name == LAST_OF_GROUP.name else self.parts

        def step(mask: Mask) -> None:
            some, ones = where(chosen(mask), mask)
            if some:
                write(ones)
            count = sharers or cast(int, last(mask)) + 1
            frame[place] = np.asarray(cast(Index, part(mask))) % count == count - 1

        return step

    def copy_async(self, node: CopyAsync) -> Step:
        """Reads the pieces of which something exists, writes all of them."""
        count = compile_expression(node.valid, self.scope).run
        read = self.access(node.source, write=False, width=node.width)
        write = self.access(node.target, write=True, width=node.width)

        def step(mask: Mask) -> None:
            self.barrier()
            some, there = where(less(0, count(mask)), mask)
            if some:
                read(there)
            write(mask)

        return step

    def loop(self, node: For[Node]) -> Step | None:
        start, stop, by = (
            compile_expression(e, self.scope).run for e in (node.start, node.stop, node.step)
        )
        carried = [
            (self.scope.slot(name).place, compile_expression(each, self.scope).run)
            for name, each in inductions(node.body)
        ]
        self.scope.enter()
        place = self.scope.variable(node.variable, "int").place
        body = self.braces(node.body)
        self.scope.leave()
        frame, stages, trips = self.scope.frame, self.stages, self.trips
        together = _unrolled(node)
        if body is None:
            return None

        def step(mask: Mask) -> None:
            first, last, stride = (_alike(e(mask)) for e in (start, stop, by))
            begun = [(slot, _alike(frame[slot]), _alike(each(mask))) for slot, each in carried]

            def run(i: int) -> None:
                frame[place] = first + i * stride
                for slot, origin, each in begun:
                    frame[slot] = origin + i * each
                body(mask)
                if together and (i + 1) % together == 0:
                    self.barrier()

            alive = self.alive
            trips(run, max(0, -(-(last - first) // stride)), stride, stages)
            if breaks(node):
                self.alive = alive

        return step

    def branch(self, node: If[Node]) -> Step | None:
        condition = compile_expression(node.condition, self.scope).run
        body, otherwise = self.braces(node.body), self.braces(node.otherwise)
        if body is None and otherwise is None:
            return None

        def step(mask: Mask) -> None:
            holds = condition(mask)
            some, on = where(holds, mask)
            others, off = where(invert(holds), mask)
            if some and body is not None:
                body(on)
            if others and otherwise is not None:
                otherwise(off)

        return step

    def departure(self, condition: Run) -> Step:
        def step(mask: Mask) -> None:
            stays = np.broadcast_to(np.asarray(invert(condition(mask))), self.lanes.count)
            if mask is not None:
                stays = stays | ~mask
            self.alive = narrowed(self.alive, stays)

        return step


def _unrolled(node: For[Node]) -> int:
    """Trips of a loop whose reads the compiler sees at once; 0 for all.  A loop without a barrier
    that says nothing is unrolled by the compiler."""
    if node.unroll is False:
        return int(any(isinstance(inner, Barrier) for inner in _statements(node.body)))
    return 0 if node.unroll is True else node.unroll


def _statements(body: tuple[Node, ...]) -> Iterator[Node]:
    for node in body:
        yield node
        if isinstance(node, Block | For):
            yield from _statements(node.body)
        elif isinstance(node, If):
            yield from _statements((*node.body, *node.otherwise))


def _alike(value: Value) -> int:
    """A number that all threads have."""
    assert isinstance(value, int | np.ndarray)
    if isinstance(value, int):
        return value
    first = int(value[0])
    assert (value == first).all(), "the bounds of a loop differ from thread to thread"
    return first


def _argument(param: Param, value: int | float) -> Compiled:
    if param.kind != "scalar":
        return known(int(value), "int")
    kind = "double" if param.dtype == "f64" else "float"
    return known(NUMBERS[kind](value), kind)
