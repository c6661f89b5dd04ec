"""WMMA: opaque fragments, which a warp loads from shared memory, multiplies, and stores to shared
memory on their way to the epilogue.

Which lane holds which element is unspecified, so a lane has no coordinates; the epilogue
takes up neighbouring accumulators from a slice of shared memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from gemmgen.ir import names
from gemmgen.ir.atoms import ATOMS, AtomTraits
from gemmgen.ir.buffers import Buffer, Role
from gemmgen.ir.control import Block, Define, For
from gemmgen.ir.edit import copies
from gemmgen.ir.expanded import Fetch, Multiply
from gemmgen.ir.expr import Element, Expr, Int, Var
from gemmgen.ir.instruction import instruction
from gemmgen.ir.lowered import Check, Constant
from gemmgen.ir.nodes import Map
from gemmgen.ir.simplify import add, div, mod, mul
from gemmgen.ir.target import WARP
from gemmgen.ir.thread_code import Move, Node, RegisterArray
from gemmgen.ir.warp_matrices import (
    FragmentArray,
    Line,
    LoadFragment,
    MultiplyFragments,
    StoreFragment,
)
from gemmgen.lower import addresses, bounds, epilogue, shared_arrays, warps
from gemmgen.lower.context import LANE, Context, Lowering, SumBody
from gemmgen.lower.static_asserts import both, divides
from gemmgen.lower.vectors import store_width

VECTOR, SLOT = Var("vector"), Var("slot")
ACC_VALUES = "acc_values"
LEAVING = "stage one row of accumulator fragments in shared memory"
TAKING = "read it back, one contiguous vector per lane"
FLOATS = 4
"""Accumulators that a lane takes up in one access."""


def array(context: Context, buffer: Buffer) -> FragmentArray:
    """The registers of a warp's fragments, or of its accumulators."""
    letters = [x for x in buffer.letters if x != context.problem.k]
    shape: list[Expr] = [names.fragments(letter) for letter in letters]
    sizes = [context.axis(letter).pieces for letter in letters]
    if buffer.stages > 1:
        shape.insert(0, Int(buffer.stages))
        sizes.insert(0, buffer.stages)
    accumulators = buffer.role is Role.ACCUMULATOR
    wide = accumulators and context.is_split and context.kernel.work.reduce == "ordered"
    zero = accumulators and context.born_zero
    return FragmentArray(buffer.name, buffer.dtype, tuple(shape), tuple(sizes), zero, wide)


def fetch(context: Context, node: Fetch) -> tuple[Node, ...]:
    """An operand's fragments of one step, from its tile in shared memory."""
    tile, k = context.buffer(node.copy.src), context.problem.k
    (letter,) = (x for x in tile.letters if x != k)
    side = "a" if letter == context.problem.m else "b"

    def load(number: Expr) -> tuple[Node, ...]:
        target = addresses.fragment_at(node.slot, node.copy.dst, number)
        index: dict[str, Expr] = {letter: _first(letter, number), k: node.k}
        source = addresses.in_shared(context, tile, node.stage, index)
        row, line = shared_arrays.row(context, tile), _line(context, tile)
        return (LoadFragment(target, source, row, side, line, tile.dtype),)

    return _each(context, letter, load)


def multiply(context: Context, node: Multiply) -> tuple[Node, ...]:
    """Every pair of the warp's fragments."""
    m, n = context.letters
    a, b = node.contract.a, node.contract.b
    sides = {copy.dst: context.buffer(copy.src) for copy in copies(context.kernel)}

    def one(row: Expr, column: Expr) -> tuple[Node, ...]:
        return (
            MultiplyFragments(
                Element("acc", (row, column)),
                addresses.fragment_at(node.a_stage, a, row),
                addresses.fragment_at(node.b_stage, b, column),
                _line(context, sides[a]),
                _line(context, sides[b]),
                context.buffer(a).dtype,
            ),
        )

    return _each(context, m, lambda row: _each(context, n, lambda column: one(row, column)))


def store(context: Context, node: Map) -> tuple[Node, ...]:
    """One row of the warp's fragments after another: through its part of a slice of shared memory,
    where the lanes take up neighbouring accumulators for the epilogue."""
    assert node.through is not None
    slice_ = context.buffer(node.through)
    outer, inner = slice_.letters
    first = Var(f"slice_{outer}")
    number = mul(div(names.warp_origin(outer), names.warp(outer)), names.instruction(outer))

    def pass_on(at: Expr) -> tuple[Node, ...]:
        leaving = _each(context, inner, lambda other: _leave(context, slice_, at, other))
        taking = (_take_up(context, node, slice_, at), instruction("sync_warp"))
        return (
            Block(LEAVING, slice_.origins, (*leaving, instruction("sync_warp"))),
            Block(TAKING, node.origins, taking),
        )

    body = (Define(first.name, number), *_each(context, outer, pass_on))
    return (Block(epilogue.NOTE, node.origins, body),)


def _leave(context: Context, slice_: Buffer, at: Expr, other: Expr) -> tuple[Node, ...]:
    """One fragment of accumulators into the slice."""
    outer, inner = slice_.letters
    numbers = {outer: at, inner: other}
    within: dict[str, Expr] = {outer: Var(f"slice_{outer}"), inner: _first(inner, other)}
    return (
        StoreFragment(
            addresses.in_shared(context, slice_, None, within),
            Element("acc", tuple(numbers[letter] for letter in context.letters)),
            shared_arrays.row(context, slice_),
            "row" if inner == context.problem.n else "col",
        ),
    )


def _take_up(context: Context, node: Map, slice_: Buffer, at: Expr) -> Node:
    """The warp's part of the slice, shared out among its lanes: ``width`` neighbours each."""
    outer, inner = slice_.letters
    width, vector = store_width(context.kernel, node), context.width(node.dst)
    across = div(names.warp(inner), vector)
    vectors = div(mul(names.instruction(outer), across), Int(WARP))
    row, column = names.thread_origin(outer), names.thread_origin(inner)
    index: dict[str, Expr] = {
        outer: add(names.tile_origin(outer), _first(outer, at), row),
        inner: add(names.tile_origin(inner), names.warp_origin(inner), column),
    }

    def sum_at(e: Expr) -> Element:
        within: dict[str, Expr] = {
            outer: add(Var(f"slice_{outer}"), row),
            inner: add(names.warp_origin(inner), column, e),
        }
        return addresses.in_shared(context, slice_, None, within)

    taken, sum_of = _accumulators(width, vector, sum_at)
    columns = (
        Define(inner, index[inner]),
        *epilogue.neighbours(context, node, epilogue.Own(sum_of), taken),
    )
    inside = bounds.inside(context, outer, Var(outer))
    body = (
        Define(SLOT.name, add(mul(VECTOR, Int(WARP)), LANE)),
        Define(row.name, div(SLOT, across)),
        Define(column.name, mul(mod(SLOT, across), vector)),
        Define(outer, index[outer]),
        *bounds.guarded(inside, columns),
    )
    return For(VECTOR.name, Int(0), vectors, Int(1), body, unroll=True)


def _accumulators(
    width: int, vector: Expr, sum_at: Callable[[Expr], Element]
) -> tuple[tuple[Node, ...], epilogue.ByElement]:
    """A lane's neighbours, taken up 16 bytes at a time (and how), and where they then are."""
    if width == 1:
        return (), sum_at
    at_once = min(width, FLOATS)
    moves = (
        Move(Element(ACC_VALUES, (Int(e),)), sum_at(Int(e)), at_once)
        for e in range(0, width, at_once)
    )
    array = RegisterArray(ACC_VALUES, "f32", (vector,), (width,), wide=True)
    return (array, *moves), lambda e: Element(ACC_VALUES, (e,))


def _first(letter: str, number: Expr) -> Expr:
    """Where the warp's fragment of this number begins, within the block's tile."""
    return add(names.warp_origin(letter), mul(number, names.instruction(letter)))


def _line(context: Context, tile: Buffer) -> Line:
    """What is contiguous in an operand's tile: rows of its matrix, or columns."""
    columns = context.problem.k if context.problem.m in tile.letters else context.problem.n
    return "row" if tile.letters[-1] == columns else "col"


def _each(
    context: Context, letter: str, body: Callable[[Expr], tuple[Node, ...]]
) -> tuple[Node, ...]:
    """``body`` for each of a warp's fragments along ``letter``."""
    if context.axis(letter).pieces == 1:
        return body(Int(0))
    number = Var(f"frag_{letter}")
    return (For(number.name, Int(0), names.fragments(letter), Int(1), body(number), unroll=True),)


def accumulator_row(context: Context) -> int:
    """A lane's registers of one fragment."""
    return _atom(context).registers


def each_sum(context: Context, width: Expr, body: SumBody) -> tuple[Node, ...]:
    """``body`` for a lane's registers of its warp's fragments: which accumulators they are does not
    matter, as a lane of another block has the same ones."""
    m, n = context.letters
    row, column, register = Var(f"frag_{m}"), Var(f"frag_{n}"), Var("reg")
    registers = Int(accumulator_row(context))
    fragment = add(mul(row, names.fragments(n)), column)
    number = add(mul(fragment, registers), register)
    inner = body(Element("acc", (row, column, register)), number)
    node: Node = For(register.name, Int(0), registers, width, inner, unroll=True)
    for variable, letter in ((column, n), (row, m)):
        stop = names.fragments(letter)
        node = For(variable.name, Int(0), stop, Int(1), (node,), unroll=True)
    return (node,)


def coordinates(context: Context) -> Iterator[Define]:
    """Where the warp's tile begins."""
    yield from warps.numbers(context, Int(_atom(context).lanes))
    number = warps.coordinates(context)
    for letter in context.letters:
        yield Define(names.warp_origin(letter).name, mul(number[letter], names.warp(letter)))


def constants(context: Context) -> Iterator[Constant]:
    """A warp's tile, what an instruction multiplies, and how many of it the tile has along each
    side."""
    yield from warps.sizes(context)
    atom, problem = _atom(context), context.problem
    for letter, side in ((problem.m, atom.m), (problem.n, atom.n), (problem.k, atom.k)):
        name = names.instruction(letter).name
        yield Constant(name, side, None, "tile of one instruction")
    for letter in context.letters:
        count = div(names.warp(letter), names.instruction(letter))
        name = names.fragments(letter).name
        yield Constant(name, context.axis(letter).pieces, count, "fragments of a warp")


def checks(context: Context) -> Iterator[Check]:
    (m, n), k = context.letters, context.problem.k
    parts = (divides(names.warp(x), names.instruction(x)) for x in (m, n))
    yield Check(both(*parts), "the fragments fill a warp's tile")
    yield Check(divides(names.block(k), names.instruction(k)), "the steps fill the tile")


def _atom(context: Context) -> AtomTraits:
    return ATOMS[context.kernel.spread.atom]


LOWER = {Fetch: fetch, Multiply: multiply, Map: store}
LOWERING = Lowering(
    owner="warp",
    nodes=LOWER,
    array=array,
    accumulator_row=accumulator_row,
    each_sum=each_sum,
    coordinates=coordinates,
    block=warps.in_one_dimension,
    constants=constants,
    threads=warps.threads,
    checks=checks,
)
