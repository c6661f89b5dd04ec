"""What the lanes of a warp do with fragments whose elements they know, interpreted: ldmatrix and
mma.sync, by the tables of ``ir/atoms.py``.

Products are added as the tensor cores of the kernel's target do; those of f64 are summed in any
order, and accumulators of integers wrap.
"""

from __future__ import annotations

from functools import cache
from math import prod
from typing import cast

import numpy as np
import numpy.typing as npt

from gemmgen.interpreter.checked_memory import Registers
from gemmgen.interpreter.code import Code, Statements
from gemmgen.interpreter.fragments import core_of, registers_of
from gemmgen.interpreter.machine import MatrixRows, Step
from gemmgen.interpreter.memory import Memory
from gemmgen.interpreter.scope import UNKNOWN, Array
from gemmgen.interpreter.simt import Mask
from gemmgen.ir.atoms import ATOMS, Atom
from gemmgen.ir.dtypes import INTEGERS, DType
from gemmgen.ir.expr import Element
from gemmgen.ir.fragment_layout import FragmentLayout
from gemmgen.ir.instruction import Instruction
from gemmgen.ir.lane_matrices import (
    OperandArray,
    SplitMatrices,
    packed,
)
from gemmgen.ir.product_types import types_of
from gemmgen.ir.target import WARP
from gemmgen.numerics.formats import STORAGE, Real, computing, numbers, stored, wrapped
from gemmgen.numerics.operators import Ints, Value

F64 = npt.NDArray[np.float64]


def _operand_array(node: OperandArray, code: Code) -> Step | None:
    each = packed(node.dtype)
    memory, declare = code.machine.registers(node, each * prod(node.sizes))
    code.scope.bind(node.name, Array(memory, (*node.sizes, each)))
    return declare


def matrix_rows(node: Instruction) -> MatrixRows:
    """What ``ldmatrix`` or ``stmatrix`` moves."""
    count, dtype = cast(int, node.get("count")), cast(DType, node.get("dtype"))
    return MatrixRows(count, dtype, node.has("transposed"))


def _load(node: Instruction, code: Code) -> Step:
    target, row = node.operands
    (fragment, number), (tile, first) = registers_of(target, code), code.element(row)
    warps, matrices = code.machine.warps, matrix_rows(node)

    def step(mask: Mask) -> None:
        for e, value in enumerate(warps.matrices(matrices, tile, first(mask), mask)):
            fragment.store(number(mask) + e, value, mask)

    return step


def _store(node: Instruction, code: Code) -> Step:
    row, source = node.operands
    (tile, first), (held, number) = code.element(row), code.element(source)
    warps, matrices = code.machine.warps, matrix_rows(node)
    count = packed(matrices.dtype) * matrices.count

    def step(mask: Mask) -> None:
        values = held.read(number(mask), count, mask)
        warps.store_matrices(matrices, tile, first(mask), values, mask)

    return step


def _split(node: SplitMatrices, code: Code) -> Step | None:
    raw, at_raw = registers_of(node.source, code)
    found = [registers_of(node.part(number), code) for number in range(node.parts)]
    if raw.known is UNKNOWN:
        return None

    def step(mask: Mask) -> None:
        begin = at_raw(mask)
        for e in range(packed(node.dtype) * node.count):
            left = np.asarray(raw.load(begin + e, mask)).astype(np.float32)
            for memory, first in found:
                part = stored(left, node.dtype)
                memory.store(first(mask) + e, cast(Value, part), mask)
                with np.errstate(all="ignore"):
                    left = left - numbers(part, node.dtype).astype(np.float32)

    return step


def _multiply(node: Instruction, code: Code) -> Step | None:
    traits, warps = ATOMS[cast(Atom, node.get("atom"))], code.machine.warps
    total, *_, of_left, of_right = node.operands
    assert isinstance(total, Element)
    assert traits.a and traits.b and traits.accumulators
    a_layout, b_layout, layout = traits.a, traits.b, traits.accumulators
    left, at_left = registers_of(of_left, code)
    right, at_right = registers_of(of_right, code)
    accumulators, first = code.element(total)
    if accumulators.known is UNKNOWN:
        return None
    shape = code.scope.array(total.buffer).sizes
    assert shape is not None
    across = shape[-1]
    places = [row * across + column for row, column in own_elements(layout)]
    of_a, of_b, of_accumulators = types_of(node)
    core = core_of(code, traits, of_a, of_b)

    def step(mask: Mask) -> None:
        warps.converge(mask)
        begin = first(mask)
        assert isinstance(begin, int) and isinstance(accumulators, Registers)
        with np.errstate(all="ignore"):
            a = _matrix(_operand(left, at_left(mask), a_layout, of_a), a_layout, traits.m, traits.k)
            b = _matrix(
                _operand(right, at_right(mask), b_layout, of_b), b_layout, traits.k, traits.n
            )
            old = np.stack([accumulators.data[begin + place] for place in places])
            total = _matrix(old.astype(np.float64), layout, traits.m, traits.n)
            if core is None:
                total = kept(total + a @ b, of_accumulators)
            else:
                total = core.added(total, a, b)
        rows, columns = _table(layout)
        for e, place in enumerate(places):
            value = total[:, rows[e], columns[e]].reshape(-1)
            accumulators.store(begin + place, value, mask)

    return step


NODES: Statements = {
    OperandArray: _operand_array,
    "ldmatrix": _load,
    "stmatrix": _store,
    SplitMatrices: _split,
    "mma": _multiply,
}


def own_elements(layout: FragmentLayout) -> list[tuple[int, int]]:
    """Where the elements of a lane are among its own rows and columns: by their order."""
    all_of = [layout.element(0, register) for register in range(layout.registers)]
    rows, columns = (sorted({at[side] for at in all_of}) for side in (0, 1))
    return [(rows.index(row), columns.index(column)) for row, column in all_of]


@cache
def _table(layout: FragmentLayout) -> tuple[Ints, Ints]:
    """The row and the column of each register of each lane."""
    at = [[layout.element(lane, r) for lane in range(WARP)] for r in range(layout.registers)]
    rows, columns = np.moveaxis(np.array(at), -1, 0)
    return rows, columns


def _operand(memory: Memory, first: int, layout: FragmentLayout, dtype: DType) -> F64:
    """The elements of all lanes as numbers; integers are held as such."""
    assert isinstance(memory, Registers)
    return elements(memory.data[first : first + layout.registers], dtype)


def elements(found: npt.NDArray[np.generic], dtype: DType) -> F64:
    """Elements of a memory as numbers; integers are held as such."""
    if dtype not in INTEGERS:
        found = numbers(found.view(STORAGE[dtype]), dtype)
    return found.astype(np.float64)


def kept(accumulators: Real, dtype: DType) -> Real:
    """Accumulators rounded to their type, or wrapped."""
    return wrapped(accumulators) if dtype in INTEGERS else accumulators.astype(computing(dtype))


def _matrix(elements: F64, layout: FragmentLayout, rows: int, columns: int) -> F64:
    """The matrices of all warps, of what their lanes hold."""
    count = elements.shape[1] // WARP
    found = np.empty((count, rows, columns))
    at_row, at_column = _table(layout)
    found[:, at_row, at_column] = elements.reshape(layout.registers, count, WARP).transpose(1, 0, 2)
    return found
