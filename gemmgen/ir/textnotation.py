"""How records of a class are written and read: their notation.

A record is its operands, then its options.  ``SYNTAX`` of the class arranges operands, as in
``"{target} = {source}"``; without it they are the fields without a default, with commas between.
All other fields are options ``name=value``, left out at their default; one that is true is its name
alone.  ``origins`` are such an option too, but the comment of a line if that has any.

Records in a record are written inline if ``SYNTAX`` names them, and after their name if they
are options.  On their own lines, below and indented, are those in tuples, those without a
default, and those with origins.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import MISSING, replace
from functools import cached_property
from typing import Any

from gemmgen.base.record import record
from gemmgen.ir.textcursor import NAME, Cursor
from gemmgen.ir.textvalues import Codec

ORIGINS = "origins"


@record
class LineField:
    """A field that is written in the line of its record."""

    name: str
    codec: Codec
    default: object
    is_flag: bool = False


@record
class Child:
    """A field whose records have their own lines, of ``kinds``; None: those of the body that the
    record is in.  ``passes_on``: what is in the records' bodies is of the kinds of that body.

    With ``label`` the field's name is a line before them, as their kinds are also another field's.
    """

    name: str
    kinds: tuple[type, ...] | None
    default: object
    is_tuple: bool
    label: bool
    passes_on: bool = False


@record
class Notation:
    """How records of class ``kind`` are written.

    ``cited`` is the field whose origins, or whose record's origins, are the comment of the line.
    ``words`` are the choices for the operand that ``SYNTAX`` begins with, if that is a choice:
    those of its type, or the keys of ``WORDS``.
    """

    kind: type[Any]
    operands: tuple[str | LineField, ...]
    options: tuple[LineField, ...]
    children: tuple[Child, ...]
    cited: str | None
    words: Collection[str]

    @property
    def keywords(self) -> Collection[str]:
        """What its line may begin with: ``barrier_array`` for ``BarrierArray``, or the words."""
        return self.words or self._own_name

    @cached_property
    def _own_name(self) -> tuple[str, ...]:
        return (re.sub(r"(?<=[a-z])(?=[A-Z])", "_", self.kind.__name__).lower(),)

    def write(self, node: Any, *, comment: bool) -> str:
        """Operands and options; with ``comment`` origins are left to the line's comment."""
        text = ""
        for part in self.operands:
            if isinstance(part, str):
                text += part
            elif isinstance(part.codec, Inline):
                cited = comment and part.name == self.cited
                text += part.codec.notation.write(getattr(node, part.name), comment=cited)
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

    def _option(self, cursor: Cursor) -> LineField | None:
        """The option that is next, if any."""
        word = NAME.match(cursor.text, cursor.at)
        return next((slot for slot in self.options if word and slot.name == word[0]), None)

    def comment(self, node: Any) -> tuple[str, ...]:
        """The origins that are the comment of the line of ``node``."""
        if self.cited is None:
            return ()
        own = getattr(node, self.cited)
        return own if self.cited == ORIGINS else self._inner().comment(own)

    def commented(self, node: Any, origins: tuple[str, ...]) -> Any:
        """``node`` with these origins, which were the comment of its line."""
        assert self.cited is not None
        own = getattr(node, self.cited)
        value = origins if self.cited == ORIGINS else self._inner().commented(own, origins)
        return replace(node, **{self.cited: value})

    def _inner(self) -> Notation:
        """The notation of the operand that has the origins."""
        codecs = (
            p.codec for p in self.operands if isinstance(p, LineField) and p.name == self.cited
        )
        return next(codec.notation for codec in codecs if isinstance(codec, Inline))

    def labelled(self, name: str) -> Child | None:
        """The field whose records come below a line with its name."""
        return next((child for child in self.children if child.label and child.name == name), None)


@record
class Inline:
    """A record in the line of another.  Its notation is found when it is needed, as records may
    hold others of their own class."""

    find: Callable[[], Notation]

    @property
    def notation(self) -> Notation:
        return self.find()

    def write(self, value: object) -> str:
        return self.notation.write(value, comment=False)

    def read(self, cursor: Cursor) -> object:
        notation = self.notation
        return notation.kind(**notation.read(cursor))
