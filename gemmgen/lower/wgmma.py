"""wgmma: a warpgroup multiplies tiles where they lie in shared memory, by instructions that go on
by themselves.

A lane's accumulators are a micro-tile, as with mma.sync; no lane holds operands. What says where
those are is a descriptor, whose address must be the same in all lanes: so the warpgroup is numbered
by a value that one lane has for all of its warp.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gemmgen.base.record import record
from gemmgen.ir import names
from gemmgen.ir.atoms import ATOMS, AtomTraits
from gemmgen.ir.boxes import span_of
from gemmgen.ir.buffers import Buffer
from gemmgen.ir.control import Define, For
from gemmgen.ir.dtypes import BYTES
from gemmgen.ir.edit import contraction
from gemmgen.ir.expanded import DescribeOperands, Multiply, MultiplyAgain, Stage, Unscale
from gemmgen.ir.expr import Call, Element, Expr, Int, Var
from gemmgen.ir.instruction import instruction
from gemmgen.ir.lowered import Check, Constant
from gemmgen.ir.nodes import Map
from gemmgen.ir.simplify import add, div, mod, mul
from gemmgen.ir.target import WARP
from gemmgen.ir.thread_code import Node
from gemmgen.ir.warpgroup_matrices import ROWS, UNIT, DescribeMatrix
from gemmgen.lower import operand_terms, threads, warps
from gemmgen.lower.addresses import begin_of_box
from gemmgen.lower.context import TID, Context
from gemmgen.lower.static_asserts import divides

FIRST_WARP = Var("first_warp")
"""The warpgroup's first warp, in a register that all lanes share."""


@record
class WgmmaOperand:
    """An operand of the contraction: its tile, and how its rows along ``letter`` are shared out."""

    letter: str
    tile: Buffer
    pieces: int
    """Instructions of a warpgroup along ``letter``.  Each takes every N eight rows, so that a
    warp's rows of all of them are neighbours; of an MN-major tile neighbours, in rounds."""

    @property
    def descriptor(self) -> str:
        return f"{self.tile.tensor}_matrix"

    @property
    def mn_major(self) -> bool:
        """Whether its rows in shared memory lie along ``letter``, one for each k."""
        return self.tile.letters[-1] == self.letter

    @property
    def contracted(self) -> str:
        """Its other letter."""
        return next(letter for letter in self.tile.letters if letter != self.letter)

    @property
    def row(self) -> int:
        """Bytes of a row."""
        return self.tile.row * BYTES[self.tile.dtype]

    @property
    def group(self) -> int:
        """Bytes of ``ROWS`` rows."""
        return ROWS * self.row


def operands(context: Context) -> tuple[WgmmaOperand, WgmmaOperand]:
    """A and B."""
    contract, traits, (m, n) = contraction(context.kernel), _atom(context), context.letters
    rows = context.axis(m)
    pieces = rows.registers * rows.lanes * _warps(traits) // traits.m
    a, b = context.buffer(contract.a), context.buffer(contract.b)
    return WgmmaOperand(m, a, pieces), WgmmaOperand(n, b, 1)


def describe(context: Context, node: DescribeOperands) -> tuple[Node, ...]:
    """A descriptor of each operand's part of a stage."""
    stages: tuple[Stage, Stage] = (node.a_stage, node.b_stage)
    return tuple(_descriptor(one, at) for one, at in zip(operands(context), stages, strict=True))


def _descriptor(operand: WgmmaOperand, stage: Stage) -> Node:
    tile, k = operand.tile, operand.contracted
    part = Int(0) if tile.parts > 1 else None
    first = {operand.letter: _first(operand.letter), k: Int(0)}
    stride: Expr = Int(operand.group)
    if operand.mn_major:
        stride = names.block(k) * operand.row
    elif operand.pieces > 1:
        stride = names.fragments(operand.letter) * stride
    begin = begin_of_box(tile, stage, first, part)
    return DescribeMatrix(operand.descriptor, begin, span_of(tile), stride, operand.mn_major)


def _first(letter: str) -> Var:
    """The warpgroup's first place along the letter of an operand: 0 of one that is alone, but then,
    too, part of each descriptor, as ptxas takes what no shuffle is part of for each lane's own."""
    return Var(f"warpgroup_{letter}")


def multiply(context: Context, node: Multiply) -> tuple[Node, ...]:
    """All that a warpgroup multiplies in a step, an instruction for each 64 of its rows."""
    a, b = operands(context)
    traits, (_, n) = _atom(context), context.letters
    columns = context.axis(n)
    assert node.accumulate is not None
    upper, below = _rows(context, a)

    def one(number: Expr) -> Node:
        further = add(_plane(a, node.a_part), _further(a, node.k), _begin(a, number))
        return instruction(
            "wgmma_multiply",
            Element(node.contract.acc, (mul(number, upper), Int(0))),
            Element(node.contract.acc, (add(mul(number, upper), below), Int(0))),
            add(Var(a.descriptor), further),
            add(Var(b.descriptor), add(_plane(b, node.b_part), _further(b, node.k))),
            node.accumulate or Int(1),
            atom=node.contract.atom,
            n=columns.extent // columns.warps,
            a=a.tile.dtype,
            b=b.tile.dtype,
            acc=context.problem.accumulate,
            a_mn_major=a.mn_major,
            b_mn_major=b.mn_major,
        )

    assert traits.accumulators is not None
    if a.pieces == 1:
        return (one(Int(0)),)
    number = Var(f"inst_{a.letter}")
    stop = names.fragments(a.letter)
    return (For(number.name, Int(0), stop, Int(1), (one(number),), unroll=True),)


def _rows(context: Context, a: WgmmaOperand) -> tuple[Expr, Expr]:
    """A thread's rows of the accumulators from one instruction to the next, and to its other row of
    one."""
    count = names.fragments(a.letter)
    if context.axis(a.letter).rounds > 1:
        return div(names.registers(a.letter), count), Int(1)
    return Int(1), Int(1) if a.pieces == 1 else count


def _begin(a: WgmmaOperand, number: Expr) -> Expr:
    """How far an instruction's rows of A are from those of the first, in units of a descriptor."""
    if not a.mn_major:
        return mul(number, Int(a.group // UNIT))
    first = mul(number, div(names.block(a.letter), names.fragments(a.letter)))
    if not a.tile.atom_width:
        return div(mul(first, Int(BYTES[a.tile.dtype])), Int(UNIT))
    columns_before = div(first, names.atom_width(a.tile.tensor))
    return mul(columns_before, div(mul(names.block(a.contracted), Int(a.row)), Int(UNIT)))


def _further(operand: WgmmaOperand, k: Expr) -> Expr:
    """How far a step along k is from the begin of a tile, in units of a descriptor."""
    tile, size = operand.tile, Int(BYTES[operand.tile.dtype])
    if operand.mn_major:
        return div(mul(k, Int(operand.row)), Int(UNIT))
    if not tile.atom_width:
        return div(mul(k, size), Int(UNIT))
    atom_width = names.atom_width(tile.tensor)
    whole = mul(mul(div(k, atom_width), names.block(operand.letter)), mul(atom_width, size))
    return div(add(whole, mul(mod(k, atom_width), size)), Int(UNIT))


def _plane(operand: WgmmaOperand, part: int) -> Expr:
    """How far a part's tile is from that of the first part, in units of a descriptor."""
    if part == 0:
        return Int(0)
    row, column = (names.block(letter) for letter in operand.tile.letters)
    plane = div(mul(mul(row, column), Int(BYTES[operand.tile.dtype])), Int(UNIT))
    return mul(Int(part), plane)


def coordinates(context: Context) -> Iterator[Define]:
    """Where a lane's accumulators begin, and the warpgroup's rows of the operands."""
    yield from threads.coordinates(context)
    number = Call("uniform", (div(TID, names.WARPGROUP),))
    yield Define(FIRST_WARP.name, mul(number, div(names.WARPGROUP, Int(WARP))))
    for letter, warp in warps.coordinates(context, FIRST_WARP).items():
        yield Define(_first(letter).name, mul(warp, warps.apart(context, letter)))


def constants(context: Context) -> Iterator[Constant]:
    """Those of threads with a micro-tile, the step of an instruction, and how many of it a
    warpgroup has along its rows."""
    yield from threads.constants(context)
    k, (rows, _) = names.instruction(context.problem.k), operands(context)
    yield Constant(k.name, _atom(context).k, None, "step of one instruction")
    count = names.fragments(rows.letter)
    yield Constant(count.name, rows.pieces, None, "instructions per warpgroup along m")


def checks(context: Context) -> Iterator[Check]:
    yield from threads.checks(context)
    k = context.problem.k
    yield Check(divides(names.block(k), names.instruction(k)), "the steps fill the tile")


def _warps(traits: AtomTraits) -> int:
    """Warps of a warpgroup, which have rows of the accumulators one below another."""
    return traits.lanes // WARP


def _atom(context: Context) -> AtomTraits:
    return ATOMS[context.kernel.spread.atom]


LOWER = {
    DescribeOperands: describe,
    Multiply: multiply,
    MultiplyAgain: operand_terms.again,
    Unscale: operand_terms.unscale,
    Map: threads.store,
}
LOWERING = replace(
    threads.LOWERING,
    nodes=LOWER,
    coordinates=coordinates,
    constants=constants,
    checks=checks,
    born_zero=False,
)
