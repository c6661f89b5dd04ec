"""Tensor cores: a warp's fragments loaded, multiplied, and on their way out of the registers."""

from __future__ import annotations

from collections.abc import Callable

from gemmgen.ir import names
from gemmgen.ir.control import Block, Define, For, If
from gemmgen.ir.edit import copies
from gemmgen.ir.expanded import Fetch, Multiply
from gemmgen.ir.expr import Element, Expr, Int, Var
from gemmgen.ir.lowered import (
    FragmentArray,
    Line,
    LoadFragment,
    Move,
    MultiplyFragments,
    Node,
    RegisterArray,
    StoreFragment,
    WarpBarrier,
)
from gemmgen.ir.nodes import Buffer, Map
from gemmgen.ir.simplify import add, div, mod, mul
from gemmgen.ir.target import WARP
from gemmgen.lower import addresses, bounds, epilogue
from gemmgen.lower.context import Context, store_width

LANE, PIECE, SPOT = Var("lane"), Var("piece"), Var("spot")
SUMS = "sums"
LEAVING = "some of the warp's sums go to shared memory"
TAKING = "its lanes take up neighbouring ones"
FLOATS = 4
"""Sums that a lane takes up in one access."""


def array(context: Context, buffer: Buffer) -> FragmentArray:
    """The registers of a warp's fragments, or of its sums."""
    letters = [x for x in buffer.letters if x != context.problem.k]
    shape: list[Expr] = [names.fragments(letter) for letter in letters]
    sizes = [context.axis(letter).pieces for letter in letters]
    if buffer.stages > 1:
        shape.insert(0, Int(buffer.stages))
        sizes.insert(0, buffer.stages)
    sums = buffer.name == "acc"
    wide = sums and context.is_split and context.kernel.work.reduce == "ordered"
    return FragmentArray(buffer.name, buffer.dtype, tuple(shape), tuple(sizes), sums, wide)


def fetch(context: Context, node: Fetch) -> tuple[Node, ...]:
    """An operand's fragments of one step, from its tile in shared memory."""
    tile, k = context.buffer(node.copy.src), context.problem.k
    (letter,) = (x for x in tile.letters if x != k)
    side = "a" if letter == context.problem.m else "b"

    def load(number: Expr) -> tuple[Node, ...]:
        target = addresses.fragment_at(node.slot, node.copy.dst, number)
        source = addresses.in_shared(
            context, tile, node.stage, {letter: _first(letter, number), k: node.k}
        )
        line = _line(context, tile)
        return (LoadFragment(target, source, _pitch(tile), side, line, tile.dtype),)

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
    where the lanes take up neighbouring sums for the epilogue."""
    assert node.through is not None
    slice_ = context.buffer(node.through)
    outer, inner = slice_.letters
    first = Var(f"slice_{outer}")
    number = mul(div(names.warp_place(outer), names.warp(outer)), names.instruction(outer))

    def pass_on(at: Expr) -> tuple[Node, ...]:
        leaving = _each(context, inner, lambda other: _leave(context, slice_, at, other))
        taking = (_take_up(context, node, slice_, at), WarpBarrier())
        return (
            Block(LEAVING, slice_.origins, (*leaving, WarpBarrier())),
            Block(TAKING, node.origins, taking),
        )

    return (Define(first.name, number), *_each(context, outer, pass_on))


def _leave(context: Context, slice_: Buffer, at: Expr, other: Expr) -> tuple[Node, ...]:
    """One fragment of sums into the slice."""
    outer, inner = slice_.letters
    numbers = {outer: at, inner: other}
    place: dict[str, Expr] = {outer: Var(f"slice_{outer}"), inner: _first(inner, other)}
    return (
        StoreFragment(
            addresses.in_shared(context, slice_, None, place),
            Element("acc", tuple(numbers[letter] for letter in context.letters)),
            _pitch(slice_),
            "row" if inner == context.problem.n else "col",
        ),
    )


def _take_up(context: Context, node: Map, slice_: Buffer, at: Expr) -> Node:
    """The warp's part of the slice, shared out among its lanes: ``width`` neighbours each."""
    outer, inner = slice_.letters
    width = store_width(context, node)
    across = div(names.warp(inner), Int(width))
    pieces = div(mul(names.instruction(outer), across), Int(WARP))
    row, column = names.place(outer), names.place(inner)
    index: dict[str, Expr] = {
        outer: add(names.tile_origin(outer), _first(outer, at), row),
        inner: add(names.tile_origin(inner), names.warp_place(inner), column),
    }

    def sum_at(e: Expr) -> Element:
        place: dict[str, Expr] = {
            outer: add(Var(f"slice_{outer}"), row),
            inner: add(names.warp_place(inner), column, e),
        }
        return addresses.in_shared(context, slice_, None, place)

    taken, sum_of = _sums(width, sum_at)
    columns = (
        Define(inner, index[inner]),
        *epilogue.neighbours(context, node, epilogue.Own(sum_of), taken),
    )
    inside = bounds.inside(context, outer, Var(outer))
    body = (
        Define(SPOT.name, add(mul(PIECE, Int(WARP)), LANE)),
        Define(row.name, div(SPOT, across)),
        Define(column.name, mul(mod(SPOT, across), Int(width))),
        Define(outer, index[outer]),
        *(columns if inside is None else (If(inside, columns),)),
    )
    return For(PIECE.name, Int(0), pieces, Int(1), body, unroll=True)


def _sums(
    width: int, sum_at: Callable[[Expr], Element]
) -> tuple[tuple[Node, ...], epilogue.ByElement]:
    """A lane's neighbours, taken up 16 bytes at a time (and how), and where they then are."""
    if width == 1:
        return (), sum_at
    at_once = min(width, FLOATS)
    moves = (
        Move(Element(SUMS, (Int(e),)), sum_at(Int(e)), at_once) for e in range(0, width, at_once)
    )
    array = RegisterArray(SUMS, "f32", (Int(width),), (width,), wide=True)
    return (array, *moves), lambda e: Element(SUMS, (e,))


def _first(letter: str, number: Expr) -> Expr:
    """Where the warp's fragment of this number begins, within the block's tile."""
    return add(names.warp_place(letter), mul(number, names.instruction(letter)))


def _pitch(tile: Buffer) -> Expr:
    """Elements between the lines of a tile."""
    return add(names.block(tile.letters[-1]), Int(tile.pad))


def _line(context: Context, tile: Buffer) -> Line:
    """Is an operand's tile contiguous along the columns of its matrix, so that rows are lines?"""
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
