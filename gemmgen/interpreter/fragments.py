"""What the lanes of a warp do together, interpreted: fragments loaded, multiplied and stored.

Which lane holds which element is the hardware's secret; here it holds half a line of its fragment,
a line being 16 neighbours in memory, and half a row of accumulators. Products are added as the
tensor cores of the kernel's target do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import product
from math import prod
from typing import cast

import numpy as np
import numpy.typing as npt

from gemmgen.interpreter.checked_memory import F32, FlatMemory, Registers
from gemmgen.interpreter.code import Code, Statements
from gemmgen.interpreter.machine import Lines, MatrixRows, Step
from gemmgen.interpreter.memory import Memory
from gemmgen.interpreter.scope import UNKNOWN, Array
from gemmgen.interpreter.simt import Index, Lanes, Mask, Trap, left_out
from gemmgen.ir.atoms import WMMA, AtomTraits
from gemmgen.ir.dtypes import BYTES, DType
from gemmgen.ir.expr import Element, Expr, Int
from gemmgen.ir.instruction import Instruction
from gemmgen.ir.lane_matrices import ROWS, packed, row_of
from gemmgen.ir.target import WARP
from gemmgen.ir.warp_matrices import (
    FragmentArray,
    Line,
    LoadFragment,
    MultiplyFragments,
    StoreFragment,
)
from gemmgen.numerics.formats import STORAGE, numbers
from gemmgen.numerics.operators import Ints, Value
from gemmgen.numerics.tensor_core_additions import TensorCoreAdditions

SIDE = WMMA.m
HALF = SIDE * SIDE // WARP
"""Elements that a lane holds of a fragment."""
ALIGNED = 32
"""Bytes that divide the address of a fragment (CUDA C++ Programming Guide, load_matrix_sync)."""

LANES_OF_ROW = 4
"""The lanes that get a row of a matrix that ldmatrix loads."""


def _fragment_array(node: FragmentArray, code: Code) -> Step | None:
    memory, declare = code.machine.registers(node, HALF * prod(node.sizes))
    code.scope.bind(node.name, Array(memory, (*node.sizes, HALF)))
    return declare


def _load(node: LoadFragment, code: Code) -> Step:
    fragment, number = registers_of(node.target, code)
    lines, warps = _lines(node.source, node.pitch, code), code.machine.warps

    def step(mask: Mask) -> None:
        for e, value in enumerate(warps.read(node, lines(mask), mask)):
            fragment.store(number(mask) + e, value, mask)

    return step


def _store(node: StoreFragment, code: Code) -> Step:
    accumulators, number = registers_of(node.source, code)
    lines, warps = _lines(node.target, node.pitch, code), code.machine.warps

    def step(mask: Mask) -> None:
        values = [accumulators.load(number(mask) + e, mask) for e in range(HALF)]
        warps.write(node, lines(mask), values, mask)

    return step


def _multiply(node: MultiplyFragments, code: Code) -> Step | None:
    accumulators, at_accumulators = registers_of(node.sum, code)
    left, at_left = registers_of(node.a, code)
    right, at_right = registers_of(node.b, code)
    warps = code.machine.warps
    core = core_of(code, WMMA, node.dtype, node.dtype)
    if accumulators.known is UNKNOWN:
        return None
    assert core is not None

    def step(mask: Mask) -> None:
        warps.converge(mask)
        with np.errstate(all="ignore"):
            a = _matrices(left, at_left(mask), node.a_line)
            b = _matrices(right, at_right(mask), node.b_line)
            first = at_accumulators(mask)
            total = core.added(_matrices(accumulators, first, "row"), a, b)
        halves = total.reshape(-1, SIDE, 2, HALF).transpose(3, 0, 1, 2)
        for e, value in enumerate(halves.reshape(HALF, -1)):
            accumulators.store(first + e, value, mask)

    return step


def _warp_barrier(node: Instruction, code: Code) -> Step:
    return code.machine.warps.converge


NODES: Statements = {
    FragmentArray: _fragment_array,
    LoadFragment: _load,
    MultiplyFragments: _multiply,
    StoreFragment: _store,
    "sync_warp": _warp_barrier,
}


def registers_of(element: Expr, code: Code) -> tuple[Memory, Callable[[Mask], int]]:
    """The registers of a fragment, and the number of the first element."""
    assert isinstance(element, Element)
    memory, index = code.element(first_of(element, code))

    def first(mask: Mask) -> int:
        number = index(mask)
        assert isinstance(number, int), f"{element.buffer} is indexed by what a thread computes"
        return number

    return memory, first


def first_of(element: Element, code: Code) -> Element:
    """The first element of a register, which may have several."""
    sizes = code.scope.array(element.buffer).sizes
    packed_in = sizes is not None and len(sizes) > len(element.indices)
    return Element(element.buffer, (*element.indices, Int(0))) if packed_in else element


def core_of(code: Code, traits: AtomTraits, a: DType, b: DType) -> TensorCoreAdditions | None:
    """How the tensor cores of the kernel's target add products of these types; None if one after
    another, as integers, or what no instruction multiplies: elements that are split later."""
    rule = code.interface.arithmetic.rule
    return TensorCoreAdditions(rule, traits.k, a, b) if rule and a in traits.types else None


def _lines(element: Element, pitch: Expr, code: Code) -> Callable[[Mask], Lines]:
    tile, first = code.element(element)
    apart = code.expression(pitch).run
    return lambda mask: Lines(tile, first(mask), cast(int, apart(mask)))


def _matrices(held: Memory, first: int, line: Line) -> npt.NDArray[np.float64]:
    """The fragments of all warps, by rows and columns."""
    assert isinstance(held, Registers)
    halves = held.data[first : first + HALF].reshape(HALF, -1, SIDE, 2)
    lines = halves.transpose(1, 2, 3, 0).reshape(-1, SIDE, SIDE).astype(np.float64)
    return lines if line == "row" else lines.transpose(0, 2, 1)


@cache
def matrix_elements(
    lanes: int, count: int, each: int, transposed: bool
) -> tuple[tuple[Ints, Ints], ...]:
    """Of each element that a lane has of ``count`` matrices: the lane that names its row, and its
    column there, of all lanes."""
    lane, found = np.arange(lanes), list[tuple[Ints, Ints]]()
    own, (row, part) = lane // WARP * WARP, np.divmod(lane % WARP, LANES_OF_ROW)
    for matrix, e in product(range(count), range(each)):
        line, column = row, each * part + e
        if transposed:
            line, column = column, line
        found.append((own + ROWS * matrix + line, column))
    return tuple(found)


class CheckedWarps:
    """The warps of some blocks, whose lanes must come to each of these steps together."""

    def __init__(self, lanes: Lanes):
        self.lanes = lanes
        lane = np.arange(lanes.count) % WARP
        self.line, self.first = lane // 2, lane % 2 * HALF

    def read(self, node: LoadFragment, lines: Lines, mask: Mask) -> Sequence[Value]:
        begin = self._first(lines, node.dtype, mask) + self.line * lines.apart + self.first
        loaded = (lines.memory.load(begin + e, mask) for e in range(HALF))
        return [_as_numbers(found, node.dtype) for found in loaded]

    def write(self, node: StoreFragment, lines: Lines, values: Sequence[Value], mask: Mask) -> None:
        first, apart = self._first(lines, "f32", mask), lines.apart
        for e, value in enumerate(values):
            column = self.first + e
            at = self.line * apart + column if node.line == "row" else column * apart + self.line
            lines.memory.store(first + at, value, mask)

    def matrices(
        self, matrices: MatrixRows, tile: Memory, rows: Index, mask: Mask
    ) -> Sequence[Value]:
        self.converge(mask)
        return [tile.load(at, mask) for at in self._places(matrices, tile, rows, mask)]

    def store_matrices(
        self, matrices: MatrixRows, tile: Memory, rows: Index, values: Sequence[Value], mask: Mask
    ) -> None:
        self.converge(mask)
        for at, value in zip(self._places(matrices, tile, rows, mask), values, strict=True):
            tile.store(at, value, mask)

    def _places(
        self, matrices: MatrixRows, tile: Memory, rows: Index, mask: Mask
    ) -> Iterator[Ints]:
        """Where each of a lane's elements is, of all lanes, by the ``rows`` that they name."""
        assert isinstance(tile, FlatMemory)
        named = self.lanes.every(rows)
        unaligned = named % row_of(matrices.dtype) != 0
        tile.refuse(unaligned, named, mask, "no row of a matrix begins there")
        each = packed(matrices.dtype)
        for names, column in matrix_elements(
            self.lanes.count, matrices.count, each, matrices.transposed
        ):
            yield named[names] + column

    def converge(self, mask: Mask) -> None:
        """All lanes of a warp come to a step, or none."""
        lane = left_out(mask, WARP)
        if lane is not None:
            raise Trap("warp", self.lanes.name(lane), 0, "not all of its lanes come to it")

    def _first(self, lines: Lines, dtype: DType, mask: Mask) -> Ints:
        """The fragment's first element, once it is known to be where a fragment may be."""
        self.converge(mask)
        memory, pitch, size = lines.memory, lines.apart, BYTES[dtype]
        assert isinstance(memory, FlatMemory)
        first = self.lanes.every(lines.first)
        same = first.reshape(-1, WARP)[:, :1] == first.reshape(-1, WARP)
        wrong = {
            "no fragment begins there": first * size % ALIGNED != 0,
            "another address than its warp's": ~same.reshape(-1),
            f"lines {pitch} elements apart": np.full(first.shape, pitch * size % WMMA.line != 0),
        }
        some = slice(None) if mask is None else mask
        for what, lanes in wrong.items():
            memory.refuse(lanes[some], first[some], mask, what)
        return first


def _as_numbers(found: Value, dtype: DType) -> F32:
    """What was read, as numbers."""
    values = np.asarray(found)
    return cast(F32, numbers(values.view(STORAGE[dtype]), dtype))
