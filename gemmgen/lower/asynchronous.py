"""Asynchronous copies of one thread: pieces from global to shared memory, zeros behind the
matrix."""

from __future__ import annotations

from gemmgen.ir import names
from gemmgen.ir.expanded import Issue
from gemmgen.ir.expr import Expr, Int, Select, Var
from gemmgen.ir.lowered import CopyAsync, Define, Node
from gemmgen.ir.simplify import add, all_of, less, sub
from gemmgen.lower.context import Context
from gemmgen.lower.copies import over_pieces
from gemmgen.lower.dealing import dealing_of


def issue(context: Context, node: Issue) -> tuple[Node, ...]:
    """The thread's pieces of a tile; the copy itself writes the zeros, so no branch is needed."""
    dealing = dealing_of(context, node.copy)
    place = dealing.place()
    index: dict[str, Expr] = {}
    defines: list[Node] = []
    for letter in (dealing.row, dealing.column):
        first = node.origin if letter == context.problem.k else names.tile_origin(letter)
        defines.append(Define(letter, add(first, place[letter])))
        index[letter] = Var(letter)
    target = context.in_shared(context.buffer(node.copy.dst), node.stage, place)
    source = context.at(node.copy.src, (dealing.row, dealing.column), index)
    valid = _valid(context, dealing.row, dealing.column, node.copy.width)
    dtype = context.buffer(node.copy.src).dtype
    copy = CopyAsync(target, source, node.copy.width, valid, dtype)
    return over_pieces(dealing, (*defines, copy))


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
