"""Threads that own elements: one, or a micro-tile, of the block's tile or of their warp's."""

from __future__ import annotations

from collections.abc import Iterator

from gemmgen.ir import names
from gemmgen.ir.buffers import Buffer, Role
from gemmgen.ir.control import Block, Define, For
from gemmgen.ir.edit import copies, copy_outward
from gemmgen.ir.expanded import Fetch, Multiply
from gemmgen.ir.expr import Binary, Expr, Int, Var
from gemmgen.ir.lowered import Check, Constant
from gemmgen.ir.nodes import Map
from gemmgen.ir.simplify import add, div, mod, mul
from gemmgen.ir.target import WARP
from gemmgen.ir.thread_code import Node, RegisterArray
from gemmgen.lower import addresses, contraction, epilogue, operands, warps
from gemmgen.lower.context import LANE, TID, Context, Lowering, SumBody, X, Y
from gemmgen.lower.split import piece_width
from gemmgen.lower.static_asserts import both, divides
from gemmgen.lower.types import kind, number


def array(context: Context, buffer: Buffer) -> Node:
    """A thread's accumulators, or its fragment of an operand."""
    if buffer.spread == context.kernel.spread:
        return _accumulators(context, buffer)
    (letter,) = buffer.letters
    shape: tuple[Expr, ...] = (names.registers(letter),)
    sizes = (context.axis(letter).registers,)
    if buffer.stages > 1:
        shape, sizes = (Int(buffer.stages), *shape), (buffer.stages, *sizes)
    wide = any(c.dst == buffer.name and c.width > 1 for c in copies(context.kernel))
    return RegisterArray(buffer.name, buffer.dtype, shape, sizes, wide=wide)


def _accumulators(context: Context, buffer: Buffer) -> Node:
    if context.scalar_accumulator:
        return Define("acc", number(0, buffer.dtype), kind(buffer.dtype), mutable=True)
    sizes = tuple(context.axis(x).registers for x in context.letters)
    shape = tuple(names.registers(x) for x in context.letters)
    is_total = buffer.role is Role.ACCUMULATOR
    wide = is_total and context.is_split and piece_width(context) > 1
    zero = context.born_zero if is_total else context.lowering.born_zero
    return RegisterArray(buffer.name, buffer.dtype, shape, sizes, zero=zero, wide=wide)


def store(context: Context, node: Map) -> tuple[Node, ...]:
    return (Block(epilogue.NOTE, node.origins, epilogue.store(context, node)),)


def accumulator_row(context: Context) -> int:
    """Neighbouring registers of accumulators."""
    return context.axis(context.letters[1]).registers


def each_sum(context: Context, width: Expr, body: SumBody) -> tuple[Node, ...]:
    """``body`` for each piece of ``width`` accumulators of the thread, and the number of its
    first."""
    if context.scalar_accumulator:
        return body(Var("acc"), Int(0))
    m, n = context.letters
    row, column = Var(f"reg_{m}"), Var(f"reg_{n}")
    number = add(mul(row, names.registers(n)), column)
    inner = body(addresses.sum_at(context, {m: row, n: column}), number)
    columns = For(column.name, Int(0), names.registers(n), width, inner, unroll=True)
    return (For(row.name, Int(0), names.registers(m), Int(1), (columns,), unroll=True),)


# Where a thread's elements are.


def coordinates(context: Context) -> Iterator[Define]:
    """The thread's first element within the block's tile."""
    if context.kernel.spread.by_warp:
        yield from _in_warp(context)
        return
    x = context.kernel.spread.x
    if context.kernel.producers.warpgroups:
        yield from _in_row(context)
        return
    shared_out = copy_outward(context.kernel)
    if context.tile_copies or context.boxed_copies or context.is_split or shared_out:
        across = names.lanes(x) if not context.scalar_accumulator else names.block(x)
        yield Define(TID.name, add(mul(Y, across), X))
    for letter in context.letters:
        thread = X if letter == x else Y
        yield Define(
            names.thread_origin(letter).name, mul(thread, addresses.width(context, letter))
        )


def _in_row(context: Context) -> Iterator[Define]:
    """The threads of a block of one dimension, along x first: others follow them."""
    x = context.kernel.spread.x
    across = names.lanes(x) if not context.scalar_accumulator else names.block(x)
    yield Define(TID.name, context.thread)
    for letter in context.letters:
        thread = (mod if letter == x else div)(TID, across)
        yield Define(
            names.thread_origin(letter).name, mul(thread, addresses.width(context, letter))
        )


def _in_warp(context: Context) -> Iterator[Define]:
    """Lanes over the warp's tile, along x first."""
    spread = context.kernel.spread
    x = spread.x
    lanes, number = spread.axes[0].lanes * spread.axes[1].lanes, warps.coordinates(context)
    yield from warps.numbers(context, Int(lanes))
    across = names.lanes(x) if not context.scalar_accumulator else names.warp(x)
    for letter in context.letters:
        lane = (mod if letter == x else div)(LANE, across)
        of_warp = mul(number[letter], warps.apart(context, letter))
        first = add(of_warp, mul(lane, addresses.width(context, letter)))
        yield Define(names.thread_origin(letter).name, first)


def block(context: Context) -> tuple[int, int]:
    """The block's threads along x and y: of one dimension where warps are numbered."""
    spread = context.kernel.spread
    if spread.by_warp or context.kernel.producers.warpgroups:
        return warps.in_one_dimension(context)
    (other,) = (a.letter for a in spread.axes if a.letter != spread.x)
    return spread.axis(spread.x).threads, spread.axis(other).threads


# The sizes that the text names.


def constants(context: Context) -> Iterator[Constant]:
    of_warp = context.kernel.spread.by_warp
    if of_warp:
        yield from warps.sizes(context)
    if not context.scalar_accumulator:
        yield from micro_tile(context, "micro-tile of a thread")
        yield from pieces(context, *context.letters)
        whole = "of a warp" if of_warp else "of the block"
        yield from along_sides(context, f"threads along each side {whole}")


def micro_tile(context: Context, note: str) -> Iterator[Constant]:
    for letter in context.letters:
        yield Constant(names.registers(letter).name, context.axis(letter).registers, None, note)


def pieces(context: Context, *letters: str) -> Iterator[Constant]:
    """The neighbours that interleaved micro-tiles are made of."""
    for letter in letters:
        axis = context.axis(letter)
        if axis.pieces > 1 and axis.width > 1:
            note = "in vectors of this many adjacent elements"
            yield Constant(names.piece(letter).name, axis.width, None, note)


def along_sides(context: Context, note: str) -> Iterator[Constant]:
    for letter in context.letters:
        share = div(_whole(context, letter), names.registers(letter))
        yield Constant(names.lanes(letter).name, context.axis(letter).lanes, share, note)


def _whole(context: Context, letter: str) -> Var:
    """What the threads along a letter divide up."""
    return names.warp(letter) if context.kernel.spread.by_warp else names.block(letter)


def threads(context: Context) -> Expr:
    """The number of threads, as the text computes it."""
    m, n = context.letters
    if context.scalar_accumulator:
        return names.block(m) * names.block(n)
    if context.kernel.spread.by_warp:
        return warps.threads(context)
    return names.lanes(m) * names.lanes(n)


def checks(context: Context) -> Iterator[Check]:
    if context.scalar_accumulator:
        return
    m, n = context.letters
    yield Check(both(_fills(context, m), _fills(context, n)), "the micro-tiles fill the tile")
    if context.kernel.spread.by_warp:
        lanes = mul(names.lanes(m), names.lanes(n))
        yield Check(Binary("==", lanes, Int(WARP)), "a warp's threads fill its tile")


def _fills(context: Context, letter: str) -> Expr:
    """A single row or column has no index in the text: by hand it can't become several."""
    size = names.registers(letter)
    single = context.axis(letter).registers == 1
    return Binary("==", size, Int(1)) if single else divides(_whole(context, letter), size)


LOWER = {Fetch: operands.fetch, Multiply: contraction.multiply, Map: store}
LOWERING = Lowering(
    owner="thread",
    nodes=LOWER,
    array=array,
    accumulator_row=accumulator_row,
    each_sum=each_sum,
    coordinates=coordinates,
    block=block,
    constants=constants,
    threads=threads,
    checks=checks,
)
