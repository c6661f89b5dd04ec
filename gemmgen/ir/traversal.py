"""What a node of any IR is made of: one walk for questions that are not about structure, and one
step of a rewriting."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from functools import cache
from operator import attrgetter
from typing import Any, TypeVar, cast

from gemmgen.ir.expr import Var

T = TypeVar("T")


def inside(tree: object) -> list[object]:
    """Every dataclass in ``tree``, a node or nested tuples of nodes, in no order."""
    found: list[object] = []
    left = [tree]
    while left:
        part = left.pop()
        kind = part.__class__
        if kind is tuple:
            left.extend(cast("tuple[object, ...]", part))
        elif (parts := _parts(kind)) is not None:
            found.append(part)
            left.extend(parts(part))
    return found


def rebuilt(tree: T, rule: Callable[[Any], Any]) -> T:
    """``tree``, a node or a tuple of nodes, of what ``rule`` makes of each of its parts."""
    if isinstance(tree, tuple):
        return cast("T", tuple(map(rule, cast("tuple[object, ...]", tree))))
    names = _fields(type(tree)) or ()
    parts = {name: rule(getattr(tree, name)) for name in names}
    return cast("T", replace(cast("Any", tree), **parts)) if parts else tree


def names_in(tree: object) -> set[str]:
    """Every variable named anywhere in ``tree``."""
    return {part.name for part in inside(tree) if isinstance(part, Var)}


@cache
def _fields(kind: type) -> tuple[str, ...] | None:
    """The fields' names; None of what is not dataclass."""
    return tuple(field.name for field in fields(kind)) if is_dataclass(kind) else None


_LEAVES = frozenset({"str", "int", "bool", "float"})
"""Types of fields that hold no node."""


@cache
def _parts(kind: type) -> Callable[[object], tuple[object, ...]] | None:
    """What reads those fields of a dataclass that may hold nodes; None of what is not dataclass."""
    if not is_dataclass(kind):
        return None
    names = [field.name for field in fields(kind) if str(field.type) not in _LEAVES]
    if len(names) > 1:
        return cast("Callable[[object], tuple[object, ...]]", attrgetter(*names))
    return (lambda part: (getattr(part, names[0]),)) if names else lambda _: ()
