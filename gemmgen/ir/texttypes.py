"""The notation of a class, worked out once from its fields, their types and its ``SYNTAX``."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache, partial
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from gemmgen.ir.expr import Expr
from gemmgen.ir.textnotation import ORIGINS, Child, Inline, LineField, Notation
from gemmgen.ir.textvalues import (
    Boolean,
    Codec,
    Either,
    Expression,
    Fixed,
    Integer,
    OneOf,
    Pair,
    Sequence,
    Text,
)

_EXPRESSIONS = frozenset(get_args(Expr))
_SIMPLE: dict[object, Codec] = {int: Integer(), bool: Boolean(), str: Text()}


@cache
def notation_of(kind: type) -> Notation:
    """How records of class ``kind`` are written."""
    hints = get_type_hints(kind)
    defaults = {field.name: cast(object, field.default) for field in fields(kind)}
    if ORIGINS in defaults:
        defaults[ORIGINS] = ()
    syntax = cast("str | None", getattr(kind, "SYNTAX", None))
    named = re.findall(r"\{(\w+)\}", syntax or "")
    below = [n for n in defaults if n not in named and _has_lines(hints[n], defaults[n])]
    if syntax is None:
        named = [n for n in defaults if n not in below and defaults[n] is MISSING]
        syntax = ", ".join(f"{{{name}}}" for name in named)
    parts = re.split(r"\{(\w+)\}", syntax)
    operands: list[str | LineField] = []
    for at, part in enumerate(parts):
        operands.append(LineField(part, codec_of(hints[part]), MISSING) if at % 2 else part)
    options = tuple(
        LineField(n, codec_of(hints[n], closed=True), defaults[n], bool in _members(hints[n]))
        for n in defaults
        if n not in (*named, *below)
    )
    inner = {
        slot.name: slot.codec.notation
        for slot in (*operands, *options)
        if isinstance(slot, LineField) and isinstance(slot.codec, Inline)
    }
    for notation in inner.values():
        # An option belongs to the innermost record that has it.
        assert not {slot.name for slot in options} & {slot.name for slot in notation.options}, kind
    cited = [ORIGINS] if ORIGINS in defaults else []
    cited += [name for name in named if name in inner and inner[name].cited]
    return Notation(
        kind,
        tuple(part for part in operands if part),
        options,
        _children(below, hints, defaults),
        cited[0] if cited else None,
        _words(kind, operands),
    )


def _words(kind: type, operands: list[str | LineField]) -> Collection[str]:
    """``global``, ``shared``, ``register`` for a buffer; its name for an instruction."""
    if (words := cast("Collection[str] | None", getattr(kind, "WORDS", None))) is not None:
        return words
    first = operands[1] if len(operands) > 1 and not operands[0] else None
    if hasattr(kind, "SYNTAX") and isinstance(first, LineField) and isinstance(first.codec, OneOf):
        return tuple(word for word, _ in first.codec.values)
    return ()


def _children(
    below: list[str], hints: dict[str, object], defaults: dict[str, object]
) -> tuple[Child, ...]:
    """Single records first, then those in tuples."""
    found: list[Child] = []
    for name in sorted(below, key=lambda name: get_origin(hints[name]) is tuple):
        is_tuple = get_origin(hints[name]) is tuple
        kinds = _record_kinds(get_args(hints[name])[0] if is_tuple else hints[name])
        label = any(c.kinds is kinds or set(c.kinds or ()) & set(kinds or ()) for c in found)
        passes_on = is_tuple and bool(getattr(get_args(hints[name])[0], "__parameters__", ()))
        found.append(Child(name, kinds, defaults[name], is_tuple, label, passes_on))
    return tuple(found)


def _has_lines(hint: object, default: object) -> bool:
    """Whether the records of a field, if it has any, are on their own lines."""
    if get_origin(hint) is tuple:
        item = get_args(hint)[0]
        return isinstance(item, TypeVar) or bool(_record_kinds(item))
    kinds = _record_kinds(hint) or ()
    cites = any(field.name == ORIGINS for kind in kinds for field in fields(kind))
    return bool(kinds) and (default is MISSING or cites)


def _members(hint: object) -> tuple[object, ...]:
    """The types of a union, or the one type; None apart, which no field is but by default."""
    is_union = get_origin(hint) in (Union, UnionType)
    return tuple(t for t in (get_args(hint) if is_union else (hint,)) if t is not NoneType)


def _record_kinds(hint: object) -> tuple[type, ...] | None:
    """The classes of records that ``hint`` allows; none if it is not of records, None if it is the
    parameter of a body."""
    if isinstance(hint, TypeVar):
        return None
    kinds = [cast(type, get_origin(member) or member) for member in _members(hint)]
    return tuple(kinds) if all(map(_is_record, kinds)) else ()


def _is_record(kind: type) -> bool:
    return is_dataclass(kind) and kind not in _EXPRESSIONS


def codec_of(hint: object, *, closed: bool = False) -> Codec:
    """How values of a type are written; ``closed``: operators in brackets."""
    members = _members(hint)
    kinds = tuple(cast(type, member) for member in members if member in _EXPRESSIONS)
    codecs = [(cast(type, m), _plain(m)) for m in members if m not in _EXPRESSIONS]
    found = [(kinds, Expression(kinds, closed))] if kinds else []
    found += [((kind,), codec) for kind, codec in codecs]
    return found[0][1] if len(found) == 1 else Either(tuple(found))


def _plain(hint: object) -> Codec:
    """How values of a type are written that is neither a union nor an expression's."""
    if hint in _SIMPLE:
        return _SIMPLE[hint]
    arguments = get_args(hint)
    if get_origin(hint) is Literal:
        return OneOf(tuple((word, word) for word in arguments))
    if get_origin(hint) is tuple:
        if ... in arguments:
            return Sequence(_item(arguments[0]))
        return Fixed(tuple(map(codec_of, arguments)))
    kind = cast("type[Any]", hint)
    if issubclass(kind, Enum):
        return OneOf(tuple((str(member.value), member) for member in kind))
    assert is_dataclass(kind), hint
    return Inline(partial(notation_of, kind))


def _item(hint: object) -> Codec:
    """How an item of a sequence is written."""
    if get_origin(hint) is tuple and len(get_args(hint)) == 2 and get_args(hint)[0] is str:
        return Pair(codec_of(get_args(hint)[1]))
    return codec_of(hint)
