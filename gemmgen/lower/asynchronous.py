"""Asynchronous copies of one thread: pieces from global to shared memory, zeros behind the
matrix."""

from __future__ import annotations

from gemmgen.ir import names
from gemmgen.ir.control import Define, For
from gemmgen.ir.expanded import CopyTileAsync
from gemmgen.ir.expr import Element, Expr, Int, Select, Var, walk
from gemmgen.ir.lowered import CopyAsync, Node, Point
from gemmgen.ir.simplify import add, all_of, less, sub
from gemmgen.lower.context import Context
from gemmgen.lower.copies import over_pieces
from gemmgen.lower.dealing import ALONG, Dealing, dealing_of


def copy_async(context: Context, node: CopyTileAsync) -> tuple[Node, ...]:
    """The thread's pieces of a tile; the copy itself writes the zeros, so no branch is needed."""
    context = context.copying(node)
    dealing = dealing_of(context, node.copy)
    place = dealing.place()
    row, column = (_define(context, node, x, place[x]) for x in (dealing.row, dealing.column))
    target = context.in_shared(context.buffer(node.copy.dst), node.stage, place)
    valid = _valid(context, dealing.row, dealing.column, node.copy.width)
    dtype = context.buffer(node.copy.src).dtype

    def copied(source: Element) -> CopyAsync:
        return CopyAsync(target, source, node.copy.width, valid, dtype)

    if dealing.turns == 1:
        index: dict[str, Expr] = {x: Var(x) for x in (dealing.row, dealing.column)}
        source = context.at(node.copy.src, (dealing.row, dealing.column), index)
        return over_pieces(dealing, (row, column, copied(source)))
    pointer = _first_of_row(context, node, dealing)
    one = copied(Element(pointer.name, (dealing.further(),)))
    asked = (column,) if Var(dealing.column) in walk(valid) else ()
    along = For(ALONG.name, Int(0), Int(dealing.turns), Int(1), (*asked, one), unroll=True)
    return over_pieces(dealing, (row, pointer, along))


def _define(context: Context, node: CopyTileAsync, letter: str, place: Expr) -> Define:
    """The index of the present piece along ``letter``."""
    first = node.origin if letter == context.problem.k else names.tile_origin(letter)
    return Define(letter, add(first, place))


def _first_of_row(context: Context, node: CopyTileAsync, dealing: Dealing) -> Point:
    """A pointer to the thread's first piece of the present row: the others are constants from
    there."""
    letters = (dealing.row, dealing.column)
    first = _define(context, node, dealing.column, dealing.first_column).value
    index: dict[str, Expr] = {dealing.row: Var(dealing.row), dealing.column: first}
    source = context.at(node.copy.src, letters, index)
    return Point(f"{node.copy.src}_piece", source, context.buffer(node.copy.src).dtype)


def _valid(context: Context, row: str, column: str, width: int) -> Expr:
    """How many of a piece's elements exist, 0 to ``width``."""
    inside = all_of(
        context.inside(row, Var(row)),
        context.inside(column, Var(column)),
    )
    count: Expr = Int(width)
    if width > 1 and not (context.is_whole(column) or context.multiple(column, width)):
        left = sub(context.stop(column), Var(column))
        count = Select(less(left, Int(width)), left, Int(width))
    return count if inside is None else Select(inside, count, Int(0))
