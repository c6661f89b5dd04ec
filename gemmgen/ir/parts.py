"""What a node of any IR is made of: one walk for questions that are not about structure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from typing import cast


def inside(tree: object) -> Iterator[object]:
    """Every dataclass in ``tree``, a node or nested tuples of nodes: itself, then its fields'."""
    if isinstance(tree, tuple):
        for part in cast("tuple[object, ...]", tree):
            yield from inside(part)
    elif (names := _fields(type(tree))) is not None:
        yield tree
        for name in names:
            part = getattr(tree, name)
            if type(part) not in _PLAIN:
                yield from inside(part)


_PLAIN = {str, int, float, bool, type(None)}
"""Types of fields with nothing inside."""


@cache
def _fields(kind: type) -> tuple[str, ...] | None:
    """The fields' names; None of what is no dataclass."""
    return tuple(field.name for field in fields(kind)) if is_dataclass(kind) else None
