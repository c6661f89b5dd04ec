"""A thread's factors of the blocks of an operand: those of its accumulators' rows, or columns.

Registers whose elements are in one block share a factor, so that a block of 128 columns costs a
thread one register however many of its accumulators are in it.
"""

from __future__ import annotations

from math import gcd

from gemmgen.base.record import record
from gemmgen.ir import names
from gemmgen.ir.blocked_letters import block, plain
from gemmgen.ir.buffers import Buffer, Space
from gemmgen.ir.control import Assign, Define, For
from gemmgen.ir.expanded import ReadScales, Stage
from gemmgen.ir.expr import Element, Expr, Int, Var
from gemmgen.ir.problem import Scaling
from gemmgen.ir.simplify import choose, div, mul
from gemmgen.ir.thread_code import Node, RegisterArray
from gemmgen.lower import addresses, bounds, epilogue
from gemmgen.lower.context import Context
from gemmgen.lower.types import number


@record
class ScaleFragment:
    """``count`` registers along ``letter``, one for each ``shared`` registers of accumulators."""

    scaling: Scaling
    letter: str
    count: int
    shared: int
    row: Buffer | None
    """The factors of the tile's rows in shared memory, if they are there."""

    @property
    def name(self) -> str:
        return f"{self.scaling.tensor.name}_frag"

    def at(self, register: Expr) -> Expr:
        """The factor of the accumulators in the register ``register`` along the letter."""
        if self.count == 1:
            return Var(self.name)
        return Element(self.name, (div(register, Int(self.shared)),))


def scale_fragment(context: Context, name: str) -> ScaleFragment:
    """The fragment of the scales in the buffer ``name``."""
    scaling = context.problem.scaling(context.buffer(name).tensor)
    assert scaling is not None
    letter = next(x for x in map(plain, scaling.tensor.letters) if x in context.letters)
    shared = _registers_in_a_block(context, letter, _block_along(scaling, letter))
    count, own = context.axis(letter).registers // shared, context.buffer(name)
    row = own if own.space is Space.SHARED else None
    return ScaleFragment(scaling, letter, count, shared, row)


def read(context: Context, node: ReadScales) -> tuple[Node, ...]:
    """Each fragment's registers, from the stage if the factors are there, else from global
    memory."""
    found: list[Node] = []
    for name in node.scales:
        found += _read(context, scale_fragment(context, name), node)
    return tuple(found)


def _read(context: Context, fragment: ScaleFragment, node: ReadScales) -> tuple[Node, ...]:
    letter, tensor = fragment.letter, fragment.scaling.tensor
    if fragment.row is not None:
        return _read_row(context, fragment, fragment.row, node.stage)
    register = Var(f"reg_{letter}") if fragment.count > 1 else Int(0)
    first = mul(register, Int(fragment.shared))
    width = context.axis(letter).width
    step = width if fragment.shared % width == 0 else 1
    (index,) = epilogue.indices(context, {letter: first}, (letter,), step)
    at = {letter: Var(letter), context.problem.k: node.origin}
    source = addresses.in_blocks(context, tensor, at)
    value = choose(bounds.inside(context, letter, Var(letter)), source, number(0, "f32"))
    if fragment.count == 1:
        return (index, Define(fragment.name, value, "float"))
    count = names.registers(letter) if fragment.shared == 1 else Int(fragment.count)
    body = (index, Assign(Element(fragment.name, (register,)), value))
    assert isinstance(register, Var)
    return (
        RegisterArray(fragment.name, "f32", (count,), (fragment.count,)),
        For(register.name, Int(0), count, Int(1), body, unroll=True),
    )


def _read_row(
    context: Context, fragment: ScaleFragment, row: Buffer, stage: Stage
) -> tuple[Node, ...]:
    """A register for each of the thread's own rows."""
    letter = fragment.letter
    register = Var(f"reg_{letter}") if fragment.count > 1 else Int(0)
    own = addresses.own(context, letter, register)
    at = {x: own if x == letter else Int(0) for x in row.letters}
    source = addresses.in_shared(context, row, stage, at)
    if fragment.count == 1:
        return (Define(fragment.name, source, "float"),)
    assert isinstance(register, Var)
    count = names.registers(letter)
    read = Assign(Element(fragment.name, (register,)), source)
    return (
        RegisterArray(fragment.name, "f32", (count,), (fragment.count,)),
        For(register.name, Int(0), count, Int(1), (read,), unroll=True),
    )


def _block_along(scaling: Scaling, letter: str) -> int:
    return next(block(x) for x in scaling.tensor.letters if plain(x) == letter)


def _registers_in_a_block(context: Context, letter: str, elements: int) -> int:
    """Neighbouring registers of a thread whose elements are always in one block of this many
    ``elements``: blocks, tiles and warps' parts of them begin at multiples of their common
    divisor."""
    axis = context.axis(letter)
    run = axis.width * axis.lanes
    window = gcd(elements, axis.extent // axis.warps)
    if axis.rounds > 1 or window % run:
        return 1
    return window // run * axis.width


LOWER = {ReadScales: read}
