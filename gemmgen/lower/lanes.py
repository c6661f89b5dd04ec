"""Accumulators that the lanes of a warp share, each over its own k elements: reading those, and
adding what the lanes have.

A lane's k elements of a step are in pieces of ``width`` neighbours; neighbouring lanes' pieces are
side by side, so that a warp reads whole lines.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gemmgen.ir import names
from gemmgen.ir.buffers import Buffer, Role
from gemmgen.ir.control import Assign, Block, Define, For, If
from gemmgen.ir.expanded import LoadLaneSlice, Multiply, WarpReduce
from gemmgen.ir.expr import Binary, Call, Element, Expr, Int, Var
from gemmgen.ir.lowered import Constant
from gemmgen.ir.nodes import Copy, Map
from gemmgen.ir.simplify import add, div, mod, mul
from gemmgen.ir.target import WARP
from gemmgen.ir.thread_code import Move, Node, RegisterArray
from gemmgen.lower import addresses, bounds, epilogue, threads, warps
from gemmgen.lower.context import LANE, Context
from gemmgen.lower.contraction import ORDERS
from gemmgen.lower.guarded import Run, call, is_function, read
from gemmgen.lower.types import computable, multiply_add, plus


def array(context: Context, buffer: Buffer) -> Node:
    """The warp's accumulators, or a lane's k elements of each of its warp's rows or columns."""
    if buffer.role is Role.ACCUMULATOR:
        return threads.array(context, buffer)
    k = context.problem.k
    (letter,) = (x for x in buffer.letters if x != k)
    shape = (names.registers(letter), names.registers(k))
    sizes = (context.axis(letter).registers, context.axis(k).registers)
    return RegisterArray(buffer.name, buffer.dtype, shape, sizes, wide=context.axis(k).width > 1)


def load_slice(context: Context, node: LoadLaneSlice) -> tuple[Node, ...]:
    """The step's k elements of all operands; without guards if the whole step is inside."""
    inside = bounds.whole_tile(context, (*context.letters, context.problem.k), node.origin)
    guarded = tuple(n for copy in node.copies for n in _read(context, copy, node.origin))
    if inside is None:
        return guarded
    whole = tuple(
        n for copy in node.copies for n in _read(context, copy, node.origin, guards=False)
    )
    return (If(inside, whole, guarded),)


def _read(context: Context, copy: Copy, origin: Expr, *, guards: bool = True) -> tuple[Node, ...]:
    k = context.problem.k
    (letter,) = (x for x in context.buffer(copy.dst).letters if x != k)
    row, element = Var(f"reg_{letter}"), Var(f"reg_{k}")
    index: dict[str, Expr] = {letter: Var(letter), k: Var(k)}

    def target(e: Expr) -> Element:
        return Element(copy.dst, (row, add(element, e)))

    run = Run(context, copy, index)
    if guards:
        piece = (call(run, target),) if is_function(run) else read(run, target)
    elif copy.width == 1:
        piece = (Assign(target(Int(0)), run.at(Int(0))),)
    else:
        piece = (Move(target(Int(0)), run.at(Int(0)), copy.width, run.matrix.dtype),)
    inner = (Define(k, add(origin, addresses.own(context, k, element, copy.width))), *piece)
    by = context.width(copy.dst)
    elements = For(element.name, Int(0), names.registers(k), by, inner, unroll=True)
    first = Define(letter, add(names.tile_origin(letter), addresses.own(context, letter, row)))
    return (For(row.name, Int(0), names.registers(letter), Int(1), (first, elements), unroll=True),)


def multiply(context: Context, node: Multiply) -> tuple[Node, ...]:
    """``acc += a * b`` over the lane's k elements, in their order."""
    (m, n), k, acc_type = context.letters, context.problem.k, context.problem.accumulate
    element = Var(f"reg_{k}")

    def operand(name: str, register: Expr) -> Expr:
        return computable(Element(name, (register, element)), context.buffer(name).dtype, acc_type)

    def one(row: Expr, column: Expr) -> tuple[Node, ...]:
        a, b = operand(node.contract.a, row), operand(node.contract.b, column)
        total = addresses.sum_at(context, {m: row, n: column})
        assert isinstance(total, Element)
        return (Assign(total, multiply_add(a, b, total, acc_type)),)

    body = ORDERS[node.contract.order](context, one)
    return (For(element.name, Int(0), names.registers(k), Int(1), body, unroll=True),)


def reduce(context: Context, _node: WarpReduce) -> tuple[Node, ...]:
    """Each lane adds the sum of the lane whose number differs in one bit, bit by bit: the same
    additions in all lanes, so that all have the same bits."""
    acc_type = context.problem.accumulate
    shuffle = "shuffle_xor_i32" if acc_type == "i32" else "shuffle_xor"
    distances = [1 << bit for bit in reversed(range(WARP.bit_length() - 1))]

    def exchange(total: Element | Var, _number: Expr) -> tuple[Node, ...]:
        assert isinstance(total, Element)
        others = (Call(shuffle, (total, Int(distance))) for distance in distances)
        return tuple(Assign(total, plus(total, other, acc_type)) for other in others)

    return threads.each_sum(context, Int(1), exchange)


def store(context: Context, node: Map) -> tuple[Node, ...]:
    """The warp's elements of C, by its first lane."""
    body = If(Binary("==", LANE, Int(0)), epilogue.store(context, node))
    return (Block(epilogue.NOTE, node.origins, (body,)),)


def coordinates(context: Context) -> Iterator[Define]:
    """Warps over the block's tile, along x first; lanes over the k elements."""
    x, k = context.kernel.spread.x, context.problem.k
    yield from warps.numbers(context, names.lanes(k))
    for letter in context.letters:
        number = (mod if letter == x else div)(warps.OWN_WARP, names.lanes(x))
        yield Define(
            names.thread_origin(letter).name, mul(number, addresses.width(context, letter))
        )
    yield Define(names.thread_origin(k).name, mul(LANE, addresses.width(context, k)))


def constants(context: Context) -> Iterator[Constant]:
    yield from threads.micro_tile(context, "micro-tile of a warp")
    yield from _along_k(context)
    yield from threads.pieces(context, *context.letters)
    yield from threads.along_sides(context, "warps along each side of the block")


def _along_k(context: Context) -> Iterator[Constant]:
    """A lane's k elements of a step, in pieces of neighbours, and the lanes that share a sum."""
    k = context.problem.k
    axis = context.axis(k)
    yield Constant(names.lanes(k).name, axis.lanes, None, "lanes that share each sum")
    share = div(names.block(k), names.lanes(k))
    yield Constant(
        names.registers(k).name, axis.registers, share, "k elements of a lane in each step"
    )
    yield from threads.pieces(context, k)


def number_of_threads(context: Context) -> Expr:
    m, n = context.letters
    count = names.lanes(m) * names.lanes(n)
    return count * names.lanes(context.problem.k)


LOWER = {LoadLaneSlice: load_slice, Multiply: multiply, WarpReduce: reduce, Map: store}
LOWERING = replace(
    threads.LOWERING,
    owner="warp",
    nodes=LOWER,
    array=array,
    coordinates=coordinates,
    block=warps.in_one_dimension,
    constants=constants,
    threads=number_of_threads,
)
