"""The values of fields as text, by their types: each kind of value is written and read here."""

from __future__ import annotations

import json
import re
from typing import Any, Protocol

from gemmgen.base.record import record
from gemmgen.ir.expr import Binary, Expr
from gemmgen.ir.exprreader import read_expression, read_operand
from gemmgen.ir.exprtext import exact_text
from gemmgen.ir.textcursor import NAME, Cursor, IRTextError

_INTEGER = re.compile(r"-?\d+")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')


class Codec(Protocol):
    """Writes values of one type, and reads what it writes."""

    def write(self, value: Any, /) -> str: ...

    def read(self, cursor: Cursor, /) -> object: ...


class Integer:
    def write(self, value: int) -> str:
        return str(value)

    def read(self, cursor: Cursor) -> int:
        return int(cursor.match(_INTEGER) or cursor.fail("expected an integer"))


class Boolean:
    """``true`` or ``false``; an option that is true is its name alone."""

    def write(self, value: bool) -> str:
        return "true" if value else "false"

    def read(self, cursor: Cursor) -> bool:
        at, word = cursor.at, cursor.match(NAME)
        return word == "true" or (word != "false" and cursor.fail("expected true or false", at))


class Text:
    """A name as it is, any other string in quotes."""

    def write(self, value: str) -> str:
        return value if NAME.fullmatch(value) else json.dumps(value)

    def read(self, cursor: Cursor) -> str:
        if not cursor.text.startswith('"', cursor.at):
            return cursor.name("a name or a string")
        at, quoted = cursor.at, cursor.match(_STRING)
        try:
            return json.loads(quoted or "")
        except json.JSONDecodeError:
            cursor.fail("expected a string", at)


@record
class OneOf:
    """One of some words; ``values`` are their meanings."""

    values: tuple[tuple[str, object], ...]

    def write(self, value: object) -> str:
        return next(word for word, meant in self.values if meant == value)

    def read(self, cursor: Cursor) -> object:
        known, at = dict(self.values), cursor.at
        word = cursor.match(NAME)
        if word not in known:
            cursor.fail(f"expected one of {', '.join(known)}", at)
        return known[word]


@record
class Expression:
    """An expression, of ``kinds`` alone; ``closed``: operators are written in brackets."""

    kinds: tuple[type, ...]
    closed: bool

    def write(self, value: Expr) -> str:
        return exact_text(value, closed=self.closed)

    def read(self, cursor: Cursor) -> Expr:
        at = cursor.at
        found = read_expression(cursor) if Binary in self.kinds else read_operand(cursor)
        if type(found) not in self.kinds:
            names = [kind.__name__ for kind in self.kinds]
            cursor.fail(f"expected an expression of {', '.join(names)}", at)
        return found


@record
class Sequence:
    """``[a, b]``: any number of values of one type."""

    item: Codec

    def write(self, value: tuple[object, ...]) -> str:
        return f"[{', '.join(map(self.item.write, value))}]"

    def read(self, cursor: Cursor) -> tuple[object, ...]:
        cursor.expect("[")
        return cursor.items(self.item.read, "]")


@record
class Pair:
    """``m=8``: a name and a value; the name alone if the value is None."""

    value: Codec

    def write(self, value: tuple[str, object]) -> str:
        name, own = Text().write(value[0]), value[1]
        return name if own is None else f"{name}={self.value.write(own)}"

    def read(self, cursor: Cursor) -> tuple[str, object]:
        name = Text().read(cursor)
        return name, self.value.read(cursor) if cursor.has("=") else None


@record
class Fixed:
    """``[a, b]``: as many values as there are types."""

    items: tuple[Codec, ...]

    def write(self, value: tuple[object, ...]) -> str:
        return f"[{', '.join(item.write(v) for item, v in zip(self.items, value, strict=True))}]"

    def read(self, cursor: Cursor) -> tuple[object, ...]:
        found: list[object] = []
        for item in self.items:
            cursor.expect("," if found else "[")
            found.append(item.read(cursor))
        cursor.expect("]")
        return tuple(found)


@record
class Either:
    """A value of one of several types: of the first that takes it."""

    codecs: tuple[tuple[tuple[type, ...], Codec], ...]

    def write(self, value: object) -> str:
        return next(codec.write(value) for kinds, codec in self.codecs if isinstance(value, kinds))

    def read(self, cursor: Cursor) -> object:
        at, wrong = cursor.at, list[IRTextError]()
        for _, codec in self.codecs:
            try:
                return codec.read(cursor)
            except IRTextError as error:
                wrong.append(error)
                cursor.at = at
        raise max(wrong, key=lambda error: error.column)
