"""What the lanes of a warp do together, interpreted: fragments loaded, multiplied and stored.

Which lane holds which element is the hardware's secret; here it holds half a line of its fragment,
a line being 16 neighbours in memory, and half a row of sums.  Products are summed in f64 and
rounded once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np
import numpy.typing as npt

from gemmgen.interpreter.evaluate import Ints
from gemmgen.interpreter.expressions import Array, Run, Scope, compile_element, compile_expression
from gemmgen.interpreter.memory import F32, FlatMemory, Index, Lanes, Mask, Registers, Trap
from gemmgen.ir.atoms import WMMA
from gemmgen.ir.dtypes import BYTES, DType
from gemmgen.ir.expr import Element, Expr, Int
from gemmgen.ir.lowered import FragmentArray, Line, LoadFragment, MultiplyFragments, StoreFragment
from gemmgen.ir.target import WARP
from gemmgen.numerics.formats import STORAGE, numbers

Step = Callable[[Mask], None]

SIDE = WMMA.m
HALF = SIDE * SIDE // WARP
"""Elements that a lane holds of a fragment."""
ALIGNED = 32
"""Bytes that divide the address of a fragment (CUDA C++ Programming Guide, load_matrix_sync)."""


class Warps:
    """The warps of some blocks, whose lanes must come to each of these steps together."""

    def __init__(self, lanes: Lanes, scope: Scope):
        self.lanes, self.scope = lanes, scope
        lane = np.arange(lanes.count) % WARP
        self.line, self.first = lane // 2, lane % 2 * HALF

    def array(self, node: FragmentArray) -> Step:
        count = HALF * int(np.prod(node.sizes))
        memory = Registers(node.name, count, self.lanes, zero=node.zero, wide=node.wide)
        self.scope.bind(node.name, Array(memory, (*node.sizes, HALF)))
        return lambda _: memory.declare()

    def load(self, node: LoadFragment) -> Step:
        fragment, number = self.fragment(node.target)
        tile, place = self.lines(node.source, node.pitch, node.dtype)

        def step(mask: Mask) -> None:
            first, pitch = place(mask)
            for e in range(HALF):
                found = tile.load(first + self.line * pitch + self.first + e, mask)
                fragment.store(number(mask) + e, as_numbers(found, node.dtype), mask)

        return step

    def multiply(self, node: MultiplyFragments) -> Step:
        sums, at_sums = self.fragment(node.sum)
        sides = [self.fragment(element) for element in (node.a, node.b)]
        lines = (node.a_line, node.b_line)

        def step(mask: Mask) -> None:
            self.meet(mask)
            with np.errstate(all="ignore"):
                a, b = (
                    self.matrices(held, at(mask), line)
                    for (held, at), line in zip(sides, lines, strict=True)
                )
                first = at_sums(mask)
                total = self.matrices(sums, first, "row") + a @ b
            halves = total.astype(np.float32).reshape(-1, SIDE, 2, HALF).transpose(3, 0, 1, 2)
            for e, value in enumerate(halves.reshape(HALF, -1)):
                sums.store(first + e, value, mask)

        return step

    def store(self, node: StoreFragment) -> Step:
        sums, number = self.fragment(node.source)
        target, place = self.lines(node.target, node.pitch, "f32")

        def step(mask: Mask) -> None:
            first, pitch = place(mask)
            for e in range(HALF):
                column = self.first + e
                at = (
                    self.line * pitch + column if node.line == "row" else column * pitch + self.line
                )
                target.store(first + at, sums.load(number(mask) + e, mask), mask)

        return step

    def meet(self, mask: Mask) -> None:
        """All lanes of a warp come to a step, or none."""
        if mask is None:
            return
        arrived = mask.reshape(-1, WARP)
        apart = arrived.any(axis=1) & ~arrived.all(axis=1)
        if apart.any():
            warp = int(np.argmax(apart))
            lane = int(np.argmin(arrived[warp])) + warp * WARP
            raise Trap("warp", self.lanes.name(lane), 0, "not all of its lanes come to it")

    def fragment(self, element: Element) -> tuple[Registers, Callable[[Mask], int]]:
        """The registers of a fragment, and the number of the first."""
        indices = (*element.indices, Int(0))
        memory, index = compile_element(element.buffer, indices, self.scope)
        assert isinstance(memory, Registers)

        def first(mask: Mask) -> int:
            number = index(mask)
            assert isinstance(number, int), f"{element.buffer} is indexed by what a thread computes"
            return number

        return memory, first

    def lines(
        self, element: Element, pitch: Expr, dtype: DType
    ) -> tuple[FlatMemory, Callable[[Mask], tuple[Ints, int]]]:
        """The shared memory of a fragment; where it begins, and how far its lines are apart."""
        memory, index = compile_element(element.buffer, element.indices, self.scope)
        assert isinstance(memory, FlatMemory)
        apart: Run = compile_expression(pitch, self.scope).run
        size = BYTES[dtype]

        def place(mask: Mask) -> tuple[Ints, int]:
            self.meet(mask)
            first = np.broadcast_to(np.asarray(cast(Index, index(mask))), self.lanes.count)
            distance = apart(mask)
            assert isinstance(distance, int)
            self.check(memory, first, first * size % ALIGNED != 0, mask, "no fragment begins there")
            same = first.reshape(-1, WARP)[:, :1] == first.reshape(-1, WARP)
            self.check(memory, first, ~same.reshape(-1), mask, "another place than its warp's")
            wrong = np.full(self.lanes.count, distance * size % WMMA.line != 0)
            self.check(memory, first, wrong, mask, f"lines {distance} elements apart")
            return first, distance

        return memory, place

    def check(
        self,
        memory: FlatMemory,
        first: Ints,
        wrong: npt.NDArray[np.bool_],
        mask: Mask,
        what: str,
    ) -> None:
        wrong = wrong if mask is None else wrong & mask
        if wrong.any():
            lane = int(np.argmax(wrong))
            raise memory.trap(lane, int(first[lane]), what)

    def matrices(self, held: Registers, first: int, line: Line) -> npt.NDArray[np.float64]:
        """The fragments of all warps, by rows and columns."""
        halves = held.data[first : first + HALF].reshape(HALF, -1, SIDE, 2)
        lines = halves.transpose(1, 2, 3, 0).reshape(-1, SIDE, SIDE).astype(np.float64)
        return lines if line == "row" else lines.transpose(0, 2, 1)


def as_numbers(found: npt.NDArray[np.generic] | np.generic, dtype: DType) -> F32:
    """What was read, as numbers."""
    values = np.asarray(found)
    return cast(F32, numbers(values.view(STORAGE[dtype]), dtype))
