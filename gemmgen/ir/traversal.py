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
        if isinstance(part, tuple):
            left.extend(cast("tuple[object, ...]", part))
        elif (values := _values(type(part))) is not None:
            found.append(part)
            left.append(values(part))
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


@cache
def _values(kind: type) -> Callable[[object], object] | None:
    """What reads a dataclass's field, or all of them as a tuple; None of what is not dataclass."""
    names = _fields(kind)
    if names is None:
        return None
    return attrgetter(*names) if names else lambda _: ()
