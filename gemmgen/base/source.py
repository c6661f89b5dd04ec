"""A schedule's text, and spans in it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import log10

from gemmgen.base.record import record

_WIDEST = 120
"""Characters of a line that an excerpt shows; of a longer one, the part with the mistake."""


@record
class Span:
    """Characters ``start`` to ``end`` (exclusive) of a source text, for error messages."""

    start: int
    end: int


@record
class Blame:
    """An argument of a directive, or an operand of it, at one ``hop`` if it is given: what a check
    blames that does not know the text.  Without either it is the directive."""

    directive: str
    argument: str = ""
    operand: str = ""
    hop: str = ""


@record
class Source:
    """A text and the name under which its errors are reported."""

    text: str
    name: str = "<schedule>"

    def cleaned(self) -> Source:
        """The same text without a byte order mark, its lines ended by ``\\n`` alone."""
        text = self.text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
        return self if text == self.text else Source(text, self.name)

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of ``offset``, both counted from 1."""
        line = self.text.count("\n", 0, offset) + 1
        return line, offset - (self.text.rfind("\n", 0, offset) + 1) + 1

    def line(self, number: int) -> str:
        """The text of line ``number``, counted from 1, without its line end."""
        return self.text.split("\n")[number - 1]

    def excerpt(self, span: Span) -> str:
        """The line of ``span`` with carets under it; a span over several lines is cut at the first.

        A character that doesn't print is shown as ``?``, so that no text can control a terminal.
        """
        number, column = self.position(span.start)
        text, start, end = self.line(number), column - 1, column - 1 + span.end - span.start
        if len(text) > _WIDEST:
            first = max(0, min(start - _WIDEST // 3, len(text) - _WIDEST))
            text, start, end = text[first : first + _WIDEST], start - first, end - first
        text = "".join(c if c == "\t" or c.isprintable() else "?" for c in text)
        gutter = f"{number:>5} | "
        pad = "".join("\t" if c == "\t" else " " for c in text[:start])
        carets = "^" * max(1, min(end, len(text)) - start)
        return f"{gutter}{text}\n{' ' * (len(gutter) - 2)}| {pad}{carets}"


def shown(text: str) -> str:
    """A user's text as a message quotes it: shortened, and printable."""
    short = text if len(text) <= 40 else f"{text[:36]}..."
    return "".join(c if c.isprintable() else "?" for c in short)


def digits(number: int) -> str:
    """All digits of a number; ``str`` refuses one of more than 4300 digits."""
    from decimal import Decimal

    return f"{Decimal(number):f}"


def value_shown(value: object) -> str:
    """A user's value as a message quotes it: a long number by its length."""
    if isinstance(value, int) and value.bit_length() > 128:
        sign = "-" if value < 0 else ""
        return f"{sign}10^{int(value.bit_length() * log10(2))} or so"
    try:
        return shown(repr(value))
    except ValueError:  # a longer one within a tuple
        return f"a {type(value).__name__}"


def counted(number: int, what: str) -> str:
    """``1 shape``, ``3 shapes``."""
    return f"{number} {what}" + ("" if number == 1 else "s")


def indexed(name: str, letters: Iterable[str]) -> str:
    """``A[m, k]``."""
    return f"{name}[{', '.join(letters)}]"


def listed(parts: Sequence[str]) -> str:
    """``a, b and c``."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def remainder(number: int, divisor: int) -> str:
    """``100 % 8 = 4``."""
    return f"{number} % {divisor} = {number % divisor}"
