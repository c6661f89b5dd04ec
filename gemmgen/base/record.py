"""Frozen dataclasses that are cheap to define.

Python up to 3.12 compiles each method of each dataclass when its module is imported.  gemmgen has
about 300 of them, and ``emit`` loads 160: compiling ``==``, ``hash`` and ``repr`` of these took a
seventh of its time.  Here each of the three is one function for all classes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import Field, dataclass, fields
from operator import attrgetter
from reprlib import recursive_repr
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True)
def record(cls: type[T]) -> type[T]:
    """``dataclass(frozen=True)``: its constructor, fields, comparison, hash and representation.

    Fields are compared as tuples are: identical objects are equal.  A method that the class defines
    itself is kept.
    """
    own = set(vars(cls))
    made: Any = dataclass(frozen=True, eq=False, repr=False)(cls)
    compared = _values([field for field in fields(made) if field.compare])

    def equal(self: object, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return compared(self) == compared(other)

    def hashed(self: object) -> int:
        return hash(compared(self))

    if "__eq__" not in own:
        made.__eq__ = equal
    if "__hash__" not in own:
        made.__hash__ = hashed
    if "__repr__" not in own:
        made.__repr__ = _represented
    return made


def _values(chosen: list[Field[Any]]) -> Callable[[object], object]:
    """A function from an object to the tuple of its compared fields."""
    names = [field.name for field in chosen]
    if len(names) == 1:
        names *= 2  # for one name attrgetter returns no tuple; only in tuples NaN equals itself
    return attrgetter(*names) if names else lambda _: ()


@recursive_repr()
def _represented(self: Any) -> str:
    shown = (f"{field.name}={getattr(self, field.name)!r}" for field in fields(self) if field.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"
