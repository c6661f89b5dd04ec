"""mma.sync: fragments whose elements the lanes know, which a warp loads from shared memory, and
multiplies.

A lane's accumulators are a micro-tile like a thread's: pairs of neighbours along C's columns, four
lanes apart, in rows eight apart. So what else is done with accumulators is what ``threads.py``
does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from gemmgen.ir import names
from gemmgen.ir.atoms import Loads
from gemmgen.ir.buffers import Buffer
from gemmgen.ir.control import Block, Define, For
from gemmgen.ir.decompositions import product_note, products_of
from gemmgen.ir.edit import contraction
from gemmgen.ir.expanded import Fetch, Multiply, MultiplyAgain
from gemmgen.ir.expr import Element, Expr, Int, Var
from gemmgen.ir.fragment_layout import Side
from gemmgen.ir.instruction import instruction
from gemmgen.ir.lowered import Check, Constant
from gemmgen.ir.nodes import Map
from gemmgen.ir.simplify import add, div, mul
from gemmgen.ir.thread_code import Node, scoped
from gemmgen.lower import lane_elements, matrix_rows, operand_terms, threads
from gemmgen.lower.context import Context
from gemmgen.lower.mma_operand import Loading, atom_of, extent, operand, registers
from gemmgen.lower.static_asserts import divides

LOADING: dict[Loads, Loading] = {
    "rows": matrix_rows.LOADING,
    "elements": lane_elements.LOADING,
    "parts": operand_terms.LOADING,
}
"""What ``AtomTraits.loads`` means."""


def array(context: Context, buffer: Buffer) -> Node:
    """A lane's accumulators, or its registers of a warp's fragments."""
    if buffer.spread == context.kernel.spread:
        return threads.array(context, buffer)
    own = operand(context, buffer.name)
    shape: tuple[Expr, ...] = (mul(names.fragments(own.letter), Int(own.registers)),)
    sizes = (own.pieces * own.registers,)
    for count in (buffer.parts, buffer.stages):
        if count > 1:
            shape, sizes = (Int(count), *shape), (count, *sizes)
    return _loading(context).array(buffer.name, buffer.dtype, shape, sizes)


def fetch(context: Context, node: Fetch) -> tuple[Node, ...]:
    """An operand's fragments of one step, from its tile in shared memory."""
    own, loading = operand(context, node.copy.dst), _loading(context)

    def load(number: Expr) -> tuple[Node, ...]:
        return loading.load(context, own, node, number)

    body = _each(own.letter, own.pieces, load, loading.together(own))
    # Fragments of the first step are read before the loop, whose body may declare the same names.
    return scoped(body) if isinstance(node.k, Int) else body


def multiply(context: Context, node: Multiply) -> tuple[Node, ...]:
    """Every pair of the warp's fragments: of parts, once for each product."""
    contract, traits, (m, n) = node.contract, atom_of(context), context.letters
    a, b = operand(context, contract.a), operand(context, contract.b)
    assert traits.accumulators is not None
    types = a.fragment.dtype, b.fragment.dtype, context.problem.accumulate
    tensors = a.fragment.of or contract.a, b.fragment.of or contract.b
    rows, columns = (pieces * width for pieces, _, width in map(traits.accumulators.along, _SIDES))

    def one(row: Expr, column: Expr, of_a: int, of_b: int) -> tuple[Node, ...]:
        first = mul(column, Int(columns))
        accumulators = (
            Element(contract.acc, (add(mul(row, Int(rows)), Int(at)), first)) for at in range(rows)
        )
        operands = (
            *accumulators,
            registers(a, node.a_stage, mul(row, Int(a.registers)), of_a),
            registers(b, node.b_stage, mul(column, Int(b.registers)), of_b),
        )
        product = instruction(
            "mma", *operands, atom=contract.atom, a=types[0], b=types[1], acc=types[2]
        )
        if contract.parts == 1:
            return (product,)
        return (Block(product_note(tensors, (of_a, of_b)), (), (product,)),)

    def every(*parts: int) -> tuple[Node, ...]:
        return _each(
            m, a.pieces, lambda row: _each(n, b.pieces, lambda column: one(row, column, *parts))
        )

    products = products_of(contract.parts, contract.products)
    return tuple(node for parts in products for node in every(*parts))


_SIDES: tuple[Side, Side] = ("row", "column")


def coordinates(context: Context) -> Iterator[Define]:
    """Where a lane's accumulators begin, and what it loads of operands."""
    yield from threads.coordinates(context)
    contract = contraction(context.kernel)
    for fragment in (contract.a, contract.b):
        yield from _loading(context).origins(context, operand(context, fragment))


def constants(context: Context) -> Iterator[Constant]:
    """Those of threads with a micro-tile, what an instruction multiplies, and how many of it a
    warp's tile has along each side."""
    yield from threads.constants(context)
    for letter in (*context.letters, context.problem.k):
        name = names.instruction(letter).name
        yield Constant(name, extent(context, letter), None, "tile of one instruction")
    for letter in context.letters:
        count = div(names.warp(letter), names.instruction(letter))
        axis = context.axis(letter)
        number = axis.extent // axis.warps // extent(context, letter)
        yield Constant(names.fragments(letter).name, number, count, "fragments of a warp")


def checks(context: Context) -> Iterator[Check]:
    yield from threads.checks(context)
    k = context.problem.k
    yield Check(divides(names.block(k), names.instruction(k)), "the steps fill the tile")


def _each(
    letter: str, count: int, body: Callable[[Expr], tuple[Node, ...]], by: int = 1
) -> tuple[Node, ...]:
    """``body`` for each of a warp's ``count`` fragments along ``letter``, ``by`` at a time."""
    if count == by:
        return body(Int(0))
    number = Var(f"frag_{letter}")
    stop = names.fragments(letter)
    return (For(number.name, Int(0), stop, Int(by), body(number), unroll=True),)


def _loading(context: Context) -> Loading:
    return LOADING[atom_of(context).loads]


LOWER = {
    Fetch: fetch,
    Multiply: multiply,
    MultiplyAgain: operand_terms.again,
    Map: threads.store,
}
LOWERING = replace(
    threads.LOWERING,
    nodes=LOWER,
    array=array,
    coordinates=coordinates,
    constants=constants,
    checks=checks,
)
