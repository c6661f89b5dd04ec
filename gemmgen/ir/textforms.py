"""How a class of records is written, worked out once from its fields and their types.

A record is its operands, then its options.  ``SYNTAX`` of the class arranges operands, as in
``"{target} = {source}"``; without it they are the fields without a default, with commas between.
All other fields are options ``name=value``, left out at their default; one that is true is its name
alone.  ``origins`` are such an option too, but the comment of a line where that has any.

Records in a record are written in place where ``SYNTAX`` names them, and after their name if they
are options.  On lines of their own, below and indented, are those in tuples, those without a
default, and those with origins.
"""

from __future__ import annotations

import re
from dataclasses import MISSING, fields, is_dataclass, replace
from enum import Enum
from functools import cache, cached_property
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from gemmgen.base.record import record
from gemmgen.ir.expr import Expr
from gemmgen.ir.textcursor import NAME, Cursor
from gemmgen.ir.textvalues import (
    Boolean,
    Choice,
    Codec,
    Either,
    Expression,
    Fixed,
    Integer,
    Pair,
    Sequence,
    Text,
)

ORIGINS = "origins"
_EXPRESSIONS = frozenset(get_args(Expr))
_SIMPLE: dict[object, Codec] = {int: Integer(), bool: Boolean(), str: Text()}


@record
class Slot:
    """A field that is written in the line of its record."""

    name: str
    codec: Codec
    default: object
    is_flag: bool = False


@record
class Child:
    """A field whose records have lines of their own, of ``kinds``; None: those of the body that the
    record is in.

    With ``label`` the field's name is a line before them, as their kinds are also another field's.
    """

    name: str
    kinds: tuple[type, ...] | None
    default: object
    is_tuple: bool
    label: bool


@record
class Form:
    """How records of class ``kind`` are written.

    ``cited`` is the field whose origins, or whose record's origins, are the comment of the line.
    ``words`` are the choices for the operand that ``SYNTAX`` begins with, if that is a choice.
    """

    kind: type[Any]
    operands: tuple[str | Slot, ...]
    options: tuple[Slot, ...]
    children: tuple[Child, ...]
    cited: str | None
    words: tuple[str, ...]

    @cached_property
    def keywords(self) -> tuple[str, ...]:
        """What its line may begin with: ``copy_async`` for ``CopyAsync``, or the words."""
        name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", self.kind.__name__).lower()
        return self.words or (name,)

    def write(self, node: Any, *, comment: bool) -> str:
        """Operands and options; with ``comment`` origins are left to the line's comment."""
        text = ""
        for part in self.operands:
            if isinstance(part, str):
                text += part
            elif isinstance(part.codec, Inline):
                cited = comment and part.name == self.cited
                text += part.codec.form.write(getattr(node, part.name), comment=cited)
            else:
                text += part.codec.write(getattr(node, part.name))
        for slot in self.options:
            value = getattr(node, slot.name)
            if value == slot.default or (comment and slot.name == self.cited):
                continue
            text += f" {slot.name}"
            if not (slot.is_flag and value is True):
                text += (" " if isinstance(slot.codec, Inline) else "=") + slot.codec.write(value)
        return text.strip()

    def read(self, cursor: Cursor) -> dict[str, object]:
        """The fields that operands and options give."""
        found: dict[str, object] = {}
        for part in self.operands:
            if isinstance(part, str):
                for word in part.split():
                    cursor.expect(word)
            else:
                found[part.name] = part.codec.read(cursor)
        while (slot := self._option(cursor)) is not None:
            at = cursor.at
            cursor.expect(slot.name)
            if slot.name in found:
                cursor.fail(f"{slot.name} is given twice", at)
            is_given = isinstance(slot.codec, Inline) or cursor.has("=") or not slot.is_flag
            found[slot.name] = slot.codec.read(cursor) if is_given else True
        for slot in self.options:
            if slot.default is MISSING and slot.name not in found:
                cursor.fail(f"expected {slot.name}=")
        return {slot.name: slot.default for slot in self.options} | found

    def _option(self, cursor: Cursor) -> Slot | None:
        """The option that is next, if any."""
        word = NAME.match(cursor.text, cursor.at)
        return next((slot for slot in self.options if word and slot.name == word[0]), None)

    def comment(self, node: Any) -> tuple[str, ...]:
        """The origins that are the comment of the line of ``node``."""
        if self.cited is None:
            return ()
        own = getattr(node, self.cited)
        return own if self.cited == ORIGINS else form_of(own.__class__).comment(own)

    def commented(self, node: Any, origins: tuple[str, ...]) -> Any:
        """``node`` with these origins, which were the comment of its line."""
        assert self.cited is not None
        own = getattr(node, self.cited)
        value = origins if self.cited == ORIGINS else form_of(own.__class__).commented(own, origins)
        return replace(node, **{self.cited: value})

    def labelled(self, name: str) -> Child | None:
        """The field whose records come below a line with its name."""
        return next((child for child in self.children if child.label and child.name == name), None)

    def child(self, keyword: str, body: tuple[type, ...]) -> Child | None:
        """The field that a line of ``keyword`` below belongs to, if no label says which."""
        for child in self.children:
            kinds = body if child.kinds is None else child.kinds
            if not child.label and any(keyword in form_of(kind).keywords for kind in kinds):
                return child
        return None


@record
class Inline:
    """A record of class ``kind`` in the line of another."""

    kind: type[Any]

    @cached_property
    def form(self) -> Form:
        return form_of(self.kind)

    def write(self, value: object) -> str:
        return self.form.write(value, comment=False)

    def read(self, cursor: Cursor) -> object:
        return self.kind(**self.form.read(cursor))


def _words(kind: type, operands: list[str | Slot]) -> tuple[str, ...]:
    """``global``, ``shared``, ``register`` for a buffer."""
    first = operands[1] if len(operands) > 1 and not operands[0] else None
    if hasattr(kind, "SYNTAX") and isinstance(first, Slot) and isinstance(first.codec, Choice):
        return tuple(word for word, _ in first.codec.values)
    return ()


@cache
def form_of(kind: type) -> Form:
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
    operands: list[str | Slot] = []
    for at, part in enumerate(parts):
        operands.append(Slot(part, codec_of(hints[part]), MISSING) if at % 2 else part)
    options = tuple(
        Slot(n, codec_of(hints[n], closed=True), defaults[n], bool in _members(hints[n]))
        for n in defaults
        if n not in (*named, *below)
    )
    inner = {
        slot.name: slot.codec.form
        for slot in (*operands, *options)
        if isinstance(slot, Slot) and isinstance(slot.codec, Inline)
    }
    for form in inner.values():
        # An option belongs to the innermost record that has it.
        assert not {slot.name for slot in options} & {slot.name for slot in form.options}, kind
    cited = [ORIGINS] if ORIGINS in defaults else []
    cited += [name for name in named if name in inner and inner[name].cited]
    return Form(
        kind,
        tuple(part for part in operands if part),
        options,
        _children(below, hints, defaults),
        cited[0] if cited else None,
        _words(kind, operands),
    )


def _children(
    below: list[str], hints: dict[str, object], defaults: dict[str, object]
) -> tuple[Child, ...]:
    """Single records first, then those in tuples."""
    found: list[Child] = []
    for name in sorted(below, key=lambda name: get_origin(hints[name]) is tuple):
        is_tuple = get_origin(hints[name]) is tuple
        kinds = _record_kinds(get_args(hints[name])[0] if is_tuple else hints[name])
        label = any(c.kinds is kinds or set(c.kinds or ()) & set(kinds or ()) for c in found)
        found.append(Child(name, kinds, defaults[name], is_tuple, label))
    return tuple(found)


def _has_lines(hint: object, default: object) -> bool:
    """Whether the records of a field, if it has any, are on lines of their own."""
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
        return Choice(tuple((word, word) for word in arguments))
    if get_origin(hint) is tuple:
        if ... in arguments:
            return Sequence(_item(arguments[0]))
        return Fixed(tuple(map(codec_of, arguments)))
    kind = cast("type[Any]", hint)
    if issubclass(kind, Enum):
        return Choice(tuple((str(member.value), member) for member in kind))
    assert is_dataclass(kind), hint
    return Inline(kind)


def _item(hint: object) -> Codec:
    """How an item of a sequence is written."""
    if get_origin(hint) is tuple and len(get_args(hint)) == 2 and get_args(hint)[0] is str:
        return Pair(codec_of(get_args(hint)[1]))
    return codec_of(hint)
