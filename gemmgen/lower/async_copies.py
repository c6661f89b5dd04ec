"""A thread's cp.async copies from global to shared memory; zeros past the end of the matrix."""

from __future__ import annotations

from dataclasses import replace

from gemmgen.ir import names
from gemmgen.ir.control import Block, Define, For
from gemmgen.ir.expanded import CopyTileAsync
from gemmgen.ir.expr import Element, Expr, Int, Select, Var, walk
from gemmgen.ir.instruction import Instruction, instruction
from gemmgen.ir.simplify import add, all_of, less, sub
from gemmgen.ir.thread_code import Function, Invoke, Node, Parameter, Point
from gemmgen.ir.traversal import names_in
from gemmgen.lower import addresses, bounds, shared_arrays
from gemmgen.lower.context import TID, Context
from gemmgen.lower.copies import over_vectors
from gemmgen.lower.thread_map import ALONG, ThreadMap, thread_map_of

VALID = Var("valid")
"""How many elements of a vector exist."""


def copy_async(context: Context, node: CopyTileAsync) -> tuple[Node, ...]:
    """The thread's vectors of a tile, by a function if every tile is copied by the same guards."""
    return (_call(context, node),) if node.edge == "stop" else _vectors(context, node)


def _call(context: Context, node: CopyTileAsync) -> Invoke:
    thread_map, k = thread_map_of(context, node.copy), context.problem.k
    tile, tensor = context.buffer(node.copy.dst), node.copy.src
    letters = (thread_map.row, thread_map.column)
    body = _vectors(context, replace(node, origin=names.tile_origin(k), stage=None))
    if len(body) == 1 and isinstance(body[0], Block):
        body = body[0].body
    sizes = (addresses.pitch(context, tensor), *(bounds.stop(context, x) for x in letters))
    starts = (thread_map.first_row, thread_map.first_column) if thread_map.is_regular else (TID,)
    known: dict[Var, Expr] = {
        **{size: size for size in sizes},
        **{names.tile_origin(x): names.tile_origin(x) for x in letters},
        **{start: start for start in starts},
    }
    if k in letters:
        known[names.tile_origin(k)] = node.origin
    used = names_in(body)
    needed = {name: value for name, value in known.items() if name.name in used}
    function = Function(
        names.copy_tile(tensor),
        f"starts this thread's copies of a tile of {tensor}; zeros outside the matrix",
        node.copy.origins,
        (
            Parameter(tile.name, tile.dtype, True, shared_arrays.shape(context, tile)),
            Parameter(tensor, tile.dtype),
            *(Parameter(name.name) for name in needed),
        ),
        body,
    )
    to = Var(tile.name) if node.stage is None else Element(tile.name, (node.stage,))
    return Invoke(function, (to, Var(tensor), *needed.values()))


def _vectors(context: Context, node: CopyTileAsync) -> tuple[Node, ...]:
    """The thread's vectors of a tile; the copy itself writes the zeros, so no branch is needed."""
    thread_map = thread_map_of(context, node.copy)
    at = thread_map.coordinates()
    row, column = (_define(context, node, x, at[x]) for x in (thread_map.row, thread_map.column))
    target = addresses.in_shared(context, context.buffer(node.copy.dst), node.stage, at)
    count = _valid(context, node, thread_map.row, thread_map.column)
    counted = (Define(VALID.name, count),) if isinstance(count, Select) else ()
    valid = VALID if counted else count
    dtype = context.buffer(node.copy.src).dtype

    width = node.copy.width
    evict = None if node.copy.evict == "normal" else node.copy.evict

    def copied(source: Element) -> Instruction:
        return instruction(
            "copy_async", target, source, valid, dtype=dtype, width=width, evict=evict
        )

    if thread_map.turns == 1:
        index: dict[str, Expr] = {x: Var(x) for x in (thread_map.row, thread_map.column)}
        source = addresses.in_global(context, node.copy.src, index)
        return over_vectors(thread_map, (row, column, *counted, copied(source)))
    pointer = _first_of_row(context, node, thread_map)
    one = copied(Element(pointer.name, (thread_map.further(),)))
    asked = (column,) if Var(thread_map.column) in walk(count) else ()
    body, turns = (*asked, *counted, one), thread_map.turns_of_row
    along = For(ALONG.name, Int(0), turns, Int(1), body, unroll=True)
    return over_vectors(thread_map, (row, pointer, along))


def _define(context: Context, node: CopyTileAsync, letter: str, within: Expr) -> Define:
    """The index of the current vector along ``letter``."""
    first = node.origin if letter == context.problem.k else names.tile_origin(letter)
    return Define(letter, add(first, within))


def _first_of_row(context: Context, node: CopyTileAsync, thread_map: ThreadMap) -> Point:
    """A pointer to the thread's first vector of the current row: the others are constants from
    there."""
    first = _define(context, node, thread_map.column, thread_map.first_column).value
    index: dict[str, Expr] = {thread_map.row: Var(thread_map.row), thread_map.column: first}
    source = addresses.in_global(context, node.copy.src, index)
    return Point(f"{node.copy.src}_vector", source, context.buffer(node.copy.src).dtype)


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
