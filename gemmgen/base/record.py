"""Frozen dataclasses that are cheap to define.

Python up to 3.12 compiles each method of each dataclass when its module is imported.  gemmgen has
about 300 of them, and ``emit`` loads 150: that took a quarter of its time.  Here comparison, hash,
representation and the refusal to be changed are one function for all classes, and a constructor is
compiled once it is called often: of the 130 that ``emit`` calls, 100 are called at most 20 times.
Annotations must not be strings while dataclass reads them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, fields
from inspect import get_annotations
from operator import attrgetter
from reprlib import recursive_repr
from typing import Any, ClassVar, Never, TypeVar, cast, dataclass_transform

T = TypeVar("T")
_OFTEN = 20
"""Calls of a constructor that take less time than to compile it."""


@dataclass_transform(frozen_default=True)
def record(cls: type[T]) -> type[T]:
    """``dataclass(frozen=True)``: its constructor, fields, comparison, hash and representation.

    Fields are compared as tuples are: identical objects are equal.  A method that the class defines
    itself is kept.
    """
    own = set(vars(cls))
    if cls.__doc__ is None:
        cls.__doc__ = cls.__name__  # else dataclass writes a signature, which takes long
    made = _with_fields(cls)
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
    made.__setattr__ = made.__delattr__ = _refused
    if "__init__" not in own:
        made.__init__ = _compiled_when_called_often(made)
    return made


def _with_fields(cls: type) -> Any:
    """``cls`` with its fields.

    dataclass looks for ``ClassVar`` in each annotation that is a string, which takes long: it is
    given types in their place.
    """
    written = get_annotations(cls)
    cls.__annotations__ = {
        name: ClassVar if "ClassVar" in str(text) else object for name, text in written.items()
    }
    decorate = cast(Any, dataclass(init=False, eq=False, repr=False))
    made: Any = decorate(cls)
    cls.__annotations__ = written
    for each in fields(made):
        each.type = written.get(each.name, each.type)
    return made


def _refused(self: object, name: str, *_: object) -> Never:
    raise FrozenInstanceError(f"cannot change field {name!r}")


def _compiled_when_called_often(made: Any) -> Callable[..., None]:
    own, calls = fields(made), 0

    def first(self: Any, *given: object, **named: object) -> None:
        nonlocal calls
        calls += 1
        values = _by_name(own, given, named) if calls <= _OFTEN else None
        if values is None:
            made.__init__ = _constructor(made)
            made.__init__(self, *given, **named)
            return
        for name, value in values.items():
            object.__setattr__(self, name, value)
        if hasattr(made, "__post_init__"):
            self.__post_init__()

    return first


def _by_name(
    own: tuple[Field[Any], ...], given: tuple[object, ...], named: dict[str, object]
) -> dict[str, object] | None:
    """The fields' values from a constructor's arguments; None if these are not what it takes."""
    values = {field.name: value for field, value in zip(own, given, strict=False)}
    if len(given) > len(own) or not named.keys().isdisjoint(values):
        return None
    for field in own[len(given) :]:
        if field.name in named:
            values[field.name] = named[field.name]
        elif field.default is not MISSING:
            values[field.name] = field.default
        elif field.default_factory is not MISSING:
            values[field.name] = field.default_factory()
        else:
            return None
    return values if named.keys() <= values.keys() else None


def _constructor(made: Any) -> Callable[..., None]:
    """``__init__(self, x, y=__y__)``, which sets the fields."""
    scope: dict[str, Any] = {"__put__": object.__setattr__, "__missing__": MISSING}
    parameters, body = ["self"], ["pass"]
    for field in fields(made):
        name = value = field.name
        if field.default is not MISSING:
            scope[f"__{name}__"] = field.default
            parameters.append(f"{name}=__{name}__")
        elif field.default_factory is not MISSING:
            scope[f"__{name}__"] = field.default_factory
            parameters.append(f"{name}=__missing__")
            value = f"__{name}__() if {name} is __missing__ else {name}"
        else:
            parameters.append(name)
        body.append(f"__put__(self, {name!r}, {value})")
    if hasattr(made, "__post_init__"):
        body.append("self.__post_init__()")
    exec(f"def __init__({', '.join(parameters)}):\n {'; '.join(body)}", scope)
    scope["__init__"].__qualname__ = f"{made.__qualname__}.__init__"
    return scope["__init__"]


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
