"""What warpgroups multiply asynchronously (wgmma), interpreted.

When an instruction reads its operands, between its issue and the wait for its group, the hardware
chooses.  Early, that is at once; late, at the wait: what was written there meanwhile shows.  The
accumulators are poison from the first issue on until ``wgmma_end`` names them. Products are added
as the tensor cores of the kernel's target do; integers wrap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import chain, product
from typing import cast

import numpy as np
import numpy.typing as npt

from gemmgen.base.record import record
from gemmgen.calling.launches import Landing
from gemmgen.interpreter.checked_memory import FlatMemory, Registers
from gemmgen.interpreter.code import Code, Statements
from gemmgen.interpreter.fragments import core_of
from gemmgen.interpreter.known_fragments import elements, kept, own_elements
from gemmgen.interpreter.machine import OperandInTile, Step, WarpgroupProduct
from gemmgen.interpreter.memory import Memory
from gemmgen.interpreter.operand_places import operand_places
from gemmgen.interpreter.scope import MatrixInTile
from gemmgen.interpreter.simt import Index, Lanes, Mask, Trap
from gemmgen.ir.atoms import ATOMS, Atom, AtomTraits
from gemmgen.ir.dtypes import BYTES, ROUNDED
from gemmgen.ir.expr import Binary, Expr, Int, Var
from gemmgen.ir.instruction import Instruction
from gemmgen.ir.simplify import add
from gemmgen.ir.target import WARPGROUP
from gemmgen.ir.warpgroup_matrices import ROWS, UNIT, DescribeMatrix
from gemmgen.numerics.formats import STORAGE, cut_to_tf32
from gemmgen.numerics.operators import Ints
from gemmgen.numerics.tensor_core_additions import TensorCoreAdditions

F64 = npt.NDArray[np.float64]
_Core = TensorCoreAdditions | None


def _describe(node: DescribeMatrix, code: Code) -> Step:
    tile, first = code.element(node.first)
    sizes = code.scope.array(node.first.buffer).sizes
    assert sizes is not None
    slot, frame = code.scope.slot_of("int"), code.scope.frame
    stride = cast(int, code.expression(node.stride).known)
    row = node.swizzle or sizes[-1] * BYTES[tile.dtype]
    strides = (ROWS * row, stride) if node.mn_major else (stride, UNIT)
    code.scope.bind(node.name, MatrixInTile(tile, slot, node.swizzle, row, *strides))

    def step(mask: Mask) -> None:
        frame[slot.number] = first(mask)

    return step


def _multiply(node: Instruction, code: Code) -> Step:
    of_upper, of_lower, of_a, of_b, accumulate = node.operands
    (accumulators, upper), (_, lower) = code.element(of_upper), code.element(of_lower)
    a = _operand(of_a, node.has("a_mn_major"), code)
    b = _operand(of_b, node.has("b_mn_major"), code)
    keeps, multiplies = code.expression(accumulate).run, code.machine.multiplies
    atom, n = cast(Atom, node.get("atom")), cast(int, node.get("n"))
    left, right = (code.scope.matrix(descriptor_of(x)[0]).tile for x in (of_a, of_b))
    core = core_of(code, ATOMS[atom], left.dtype, right.dtype)

    def step(mask: Mask) -> None:
        first = cast(int, upper(mask)), cast(int, lower(mask))
        one = WarpgroupProduct(atom, n, a(mask), b(mask), accumulators, first, keeps(mask), core)
        multiplies.issue(one, mask)

    return step


def descriptor_of(operand: Expr) -> tuple[str, Expr]:
    """The name of a descriptor, and the units that are added to it."""
    match operand:
        case Var(name):
            return name, Int(0)
        case Binary("+", left, right):
            name, step = descriptor_of(left)
            return name, add(step, right)
        case _:
            raise AssertionError(f"{operand} is not a descriptor")


def _operand(operand: Expr, mn_major: bool, code: Code) -> Callable[[Mask], OperandInTile]:
    """The operand with this descriptor, or from some units further on."""
    name, step = descriptor_of(operand)
    matrix, frame, units = code.scope.matrix(name), code.scope.frame, code.expression(step).run
    return lambda mask: OperandInTile(
        matrix, cast(Index, frame[matrix.first.number]), cast(int, units(mask)) * UNIT, mn_major
    )


def _commit(node: Instruction, code: Code) -> Step:
    return code.machine.multiplies.commit


def _await(node: Instruction, code: Code) -> Step:
    (pending,) = (code.expression(operand).known for operand in node.operands)
    return partial(code.machine.multiplies.wait, cast(int, pending))


def _end(node: Instruction, code: Code) -> Step:
    (accumulators,) = node.operands
    assert isinstance(accumulators, Var)
    return partial(code.machine.multiplies.end, code.scope.array(accumulators.name).memory)


NODES: Statements = {
    DescribeMatrix: _describe,
    "wgmma_multiply": _multiply,
    "wgmma_commit": _commit,
    "wgmma_wait": _await,
    "wgmma_end": _end,
    "wgmma_end_i32": _end,
}


@record
class _Place:
    """Where an operand of a warpgroup lies in its block's tile."""

    tile: FlatMemory
    at: Ints
    cuts: bool
    """Whether the instruction drops bits that a conversion would have rounded."""

    def read(self) -> F64:
        found = self.tile.data[self.at]
        if self.cuts and self.tile.dtype in ROUNDED:
            found = cut_to_tf32(found.view(STORAGE[self.tile.dtype]))
        return elements(found, self.tile.dtype)


@dataclass
class _Pending:
    """The accumulators of an instruction while they are under way, and the registers they belong
    to."""

    memory: Registers
    registers: list[int]
    lanes: slice
    table: tuple[Ints, Ints]
    total: F64

    def take(self) -> None:
        """They are not thread's."""
        own = self.memory.data[self.registers, self.lanes]
        self.total[self.table] = own
        self.memory.data[self.registers, self.lanes] = np.nan

    def give_back(self) -> None:
        self.memory.data[self.registers, self.lanes] = self.total[self.table]


@dataclass
class _Warpgroup:
    """Multiplications since the last group, groups, and the accumulators under way, by the array
    and their first register."""

    issued: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])
    groups: list[list[Callable[[], None]]] = field(default_factory=list[list[Callable[[], None]]])
    accumulators: dict[tuple[str, int], _Pending] = field(
        default_factory=dict[tuple[str, int], _Pending]
    )


class CheckedMultiplies:
    """The multiplications of some warpgroups, whose threads must come to each of these steps
    together."""

    def __init__(self, lanes: Lanes, landing: Landing):
        self.lanes, self.late = lanes, landing == "late"
        self.warpgroups: dict[int, _Warpgroup] = {}

    def issue(self, instruction: WarpgroupProduct, mask: Mask) -> None:
        traits = ATOMS[instruction.atom]
        keeps = self.lanes.every(cast(Ints, instruction.keeps)).astype(np.bool_)
        for number, own in self._taking_part(mask):
            lanes = slice(number * WARPGROUP, (number + 1) * WARPGROUP)
            if keeps[lanes].any() != keeps[lanes].all():
                raise self._trap(number, "some of its threads keep their accumulators")
            a = self._place(instruction.a, lanes, traits, traits.m)
            b = self._place(instruction.b, lanes, traits, instruction.n)
            accumulators = _accumulators_of(own, instruction, lanes)
            how = bool(keeps[lanes.start]), instruction.core
            own.issued.append(self._begun(a, b, accumulators, *how))

    def _begun(
        self, a: _Place, b: _Place, accumulators: _Pending, keeps: bool, core: _Core
    ) -> Callable[[], None]:
        """What is left to do until the multiplication ends."""
        read = None if self.late else (a.read(), b.read())

        def end() -> None:
            left, right = read or (a.read(), b.read())
            with np.errstate(all="ignore"):
                old = accumulators.total if keeps else np.zeros_like(accumulators.total)
                new = core.added(old, left, right.T) if core else old + left @ right.T
                accumulators.total = kept(new, accumulators.memory.dtype).astype(np.float64)

        return end

    def _place(self, operand: OperandInTile, lanes: slice, traits: AtomTraits, rows: int) -> _Place:
        matrix, lane = operand.matrix, lanes.start
        tile = matrix.tile
        assert isinstance(tile, FlatMemory)
        first = set(self.lanes.every(operand.first)[lanes].tolist())
        if len(first) > 1:
            raise self._trap(lane // WARPGROUP, "its threads name several matrices")
        begin, size = first.pop(), BYTES[tile.dtype]
        if matrix.swizzle and begin * size % (ROWS * matrix.swizzle):
            raise tile.trap(lane, begin, f"no multiple of {ROWS * matrix.swizzle} bytes")
        where = (matrix.row, matrix.leading, matrix.stride, matrix.swizzle, operand.mn_major)
        extents = rows, traits.k
        places, end = operand_places(begin, operand.further, size, tile.aligned, where, extents)
        if end > tile.size:
            tile.check(places.reshape(-1), None)
        base = 0 if tile.base is None else int(tile.base[lane])
        return _Place(tile, base + places, traits.cuts)

    def commit(self, mask: Mask) -> None:
        for _, own in self._taking_part(mask):
            own.groups.append(own.issued)
            own.issued = []

    def wait(self, pending: int, mask: Mask) -> None:
        for _, own in self._taking_part(mask):
            while len(own.groups) > pending:
                for end in own.groups.pop(0):
                    end()

    def end(self, accumulators: Memory, mask: Mask) -> None:
        """Its threads may read the accumulators, if all of their multiplications are of groups."""
        self.wait(0, mask)
        for number, own in self._taking_part(mask):
            if own.issued:
                raise self._trap(number, "multiplications of no group")
            for key in [key for key in own.accumulators if key[0] == accumulators.name]:
                own.accumulators.pop(key).give_back()

    def leave(self) -> None:
        """The threads leave the kernel; raises ``Trap`` if something is under way."""
        for number, own in self.warpgroups.items():
            if own.issued or any(chain.from_iterable(own.groups)):
                raise self._trap(number, "multiplications that are not waited for")

    def _taking_part(self, mask: Mask) -> Iterator[tuple[int, _Warpgroup]]:
        for number in range(self.lanes.count // WARPGROUP):
            some = None if mask is None else mask[number * WARPGROUP : (number + 1) * WARPGROUP]
            if some is None or some.all():
                yield number, self.warpgroups.setdefault(number, _Warpgroup())
            elif some.any():
                raise self._trap(number, "not all of its threads come to it")

    def _trap(self, number: int, what: str) -> Trap:
        return Trap("warpgroup", self.lanes.name(number * WARPGROUP), 0, what)


def _accumulators_of(own: _Warpgroup, instruction: WarpgroupProduct, lanes: slice) -> _Pending:
    """The accumulators of an instruction, which are not thread's from now on."""
    memory, first = instruction.accumulators, instruction.first
    assert isinstance(memory, Registers)
    key = memory.name, first[0]
    if key not in own.accumulators:
        registers, table = accumulator_elements(instruction.atom, instruction.n, first)
        traits = ATOMS[instruction.atom]
        total = np.zeros((traits.m, instruction.n))
        own.accumulators[key] = _Pending(memory, registers, lanes, table, total)
        own.accumulators[key].take()
    return own.accumulators[key]


@cache
def accumulator_elements(
    atom: Atom, n: int, first: tuple[int, int]
) -> tuple[list[int], tuple[Ints, Ints]]:
    """The registers of the accumulators in each of a thread's rows from ``first`` on; and of each
    the row and the column that each lane has there."""
    traits = ATOMS[atom]
    layout = traits.accumulators
    assert layout is not None
    _, _, width = layout.along("column")
    own, registers = own_elements(layout), list[int]()
    rows, columns = list[list[int]](), list[list[int]]()
    for piece, register in product(range(n // traits.n), range(layout.registers)):
        row, column = own[register]
        registers.append(first[row] + piece * width + column)
        at = [layout.element(lane, register) for lane in range(layout.lanes)]
        rows.append([row for row, _ in at])
        columns.append([column + piece * traits.n for _, column in at])
    return registers, (np.array(rows), np.array(columns))
