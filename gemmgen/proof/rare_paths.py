"""Programs without rare paths.

With ``decompose`` results that are not finite are recomputed.  Finite inputs need no such
recomputation, and it would hide a read of memory that was never written.
"""

from __future__ import annotations

from typing import Any, TypeVar, cast

from gemmgen.ir.control import If
from gemmgen.ir.expr import ExprOperators
from gemmgen.ir.traversal import inside, rebuilt

T = TypeVar("T")


def drop_rare_paths(tree: T) -> T:
    """Lowered code, a node or a tuple of nodes, without the statements that are rarely reached.
    Most programs have none, and are not built again."""
    return tree if all(map(_is_usual, inside(tree))) else _left(tree)


def _left(tree: T) -> T:
    if isinstance(tree, ExprOperators):  # most nodes, in which no statement is
        return tree
    if isinstance(tree, tuple):
        kept = filter(_is_usual, cast("tuple[Any, ...]", tree))
        return cast("T", tuple(map(_left, kept)))
    return rebuilt(tree, _left)


def _is_usual(node: object) -> bool:
    return not (isinstance(node, If) and cast("If[Any]", node).rare)
