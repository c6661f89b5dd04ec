"""Asynchronous copies of one thread: pieces from global to shared memory, zeros past the end of the
matrix."""

from __future__ import annotations

from gemmgen.ir import names
from gemmgen.ir.control import Define, For
from gemmgen.ir.expanded import CopyTileAsync
from gemmgen.ir.expr import Element, Expr, Int, Select, Var, walk
from gemmgen.ir.simplify import add, all_of, less, sub
from gemmgen.ir.thread_code import CopyAsync, Node, Point
from gemmgen.lower import addresses, bounds
from gemmgen.lower.context import Context
from gemmgen.lower.copies import over_pieces
from gemmgen.lower.thread_map import ALONG, ThreadMap, thread_map_of

VALID = Var("valid")
"""How many elements of a vector exist."""


def copy_async(context: Context, node: CopyTileAsync) -> tuple[Node, ...]:
    """The thread's pieces of a tile; the copy itself writes the zeros, so no branch is needed."""
    thread_map = thread_map_of(context, node.copy)
    at = thread_map.coordinates()
    row, column = (_define(context, node, x, at[x]) for x in (thread_map.row, thread_map.column))
    target = addresses.in_shared(context, context.buffer(node.copy.dst), node.stage, at)
    count = _valid(context, node, thread_map.row, thread_map.column)
    counted = (Define(VALID.name, count),) if isinstance(count, Select) else ()
    valid = VALID if counted else count
    dtype = context.buffer(node.copy.src).dtype

    def copied(source: Element) -> CopyAsync:
        return CopyAsync(target, source, node.copy.width, valid, dtype)

    if thread_map.turns == 1:
        index: dict[str, Expr] = {x: Var(x) for x in (thread_map.row, thread_map.column)}
        source = addresses.in_global(context, node.copy.src, index)
        return over_pieces(thread_map, (row, column, *counted, copied(source)))
    pointer = _first_of_row(context, node, thread_map)
    one = copied(Element(pointer.name, (thread_map.further(),)))
    asked = (column,) if Var(thread_map.column) in walk(count) else ()
    body, turns = (*asked, *counted, one), thread_map.turns_of_row
    along = For(ALONG.name, Int(0), turns, Int(1), body, unroll=True)
    return over_pieces(thread_map, (row, pointer, along))


def _define(context: Context, node: CopyTileAsync, letter: str, within: Expr) -> Define:
    """The index of the present piece along ``letter``."""
    first = node.origin if letter == context.problem.k else names.tile_origin(letter)
    return Define(letter, add(first, within))


def _first_of_row(context: Context, node: CopyTileAsync, thread_map: ThreadMap) -> Point:
    """A pointer to the thread's first piece of the present row: the others are constants from
    there."""
    first = _define(context, node, thread_map.column, thread_map.first_column).value
    index: dict[str, Expr] = {thread_map.row: Var(thread_map.row), thread_map.column: first}
    source = addresses.in_global(context, node.copy.src, index)
    return Point(f"{node.copy.src}_piece", source, context.buffer(node.copy.src).dtype)


def _valid(context: Context, node: CopyTileAsync, row: str, column: str) -> Expr:
    """How many of a vector's elements exist, 0 to its width."""
    inside = all_of(
        bounds.inside(context, row, Var(row), node),
        bounds.inside(context, column, Var(column), node),
    )
    width = context.width(node.copy.dst)
    count = width
    if not bounds.runs_are_whole(context, column, node.copy.width):
        left = sub(bounds.stop(context, column), Var(column))
        count = Select(less(left, width), left, width)
    return count if inside is None else Select(inside, count, Int(0))


LOWER = {CopyTileAsync: copy_async}
