"""What a node of any IR is made of: one walk for questions that are not about structure."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from functools import cache
from typing import cast


def inside(tree: object) -> list[object]:
    """Every dataclass in ``tree``, a node or nested tuples of nodes, in no order."""
    found: list[object] = []
    left = [tree]
    while left:
        part = left.pop()
        if isinstance(part, tuple):
            left.extend(cast("tuple[object, ...]", part))
        elif (names := _fields(type(part))) is not None:
            found.append(part)
            left.extend([getattr(part, name) for name in names])
    return found


@cache
def _fields(kind: type) -> tuple[str, ...] | None:
    """The fields' names; None of what is no dataclass."""
    return tuple(field.name for field in fields(kind)) if is_dataclass(kind) else None
