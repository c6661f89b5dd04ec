"""Whole numbers of schedules: decimal, and within bounds."""

from __future__ import annotations

import re

from gemmgen.base.errors import Refusal
from gemmgen.base.source import shown
from gemmgen.schedule.raw import Word

_DECIMAL = re.compile(r"0|[1-9][0-9]*")
_LONGEST = 12
"""More digits are past every range; the limit keeps reading a number from taking long."""


def integer(word: Word, what: str, minimum: int, maximum: int, notes: tuple[str, ...] = ()) -> int:
    """The value of ``word``, which messages call ``what``, within ``minimum..maximum``."""
    text = word.text
    number = text.removeprefix("-")
    if not _DECIMAL.fullmatch(number):
        raise Refusal(
            f"{what} is an integer, not `{shown(text)}`",
            at=word.span,
            hint=_plain(number, minimum, maximum),
            notes=notes,
        )
    small = len(number) <= _LONGEST
    if not small or text != number or not minimum <= int(number) <= maximum:
        raise Refusal(
            f"{what} is {shown(text)}, out of range",
            at=word.span,
            hint=f"an integer from {minimum} to {maximum}",
            notes=notes,
        )
    return int(number)


def _plain(text: str, minimum: int, maximum: int) -> str:
    """The hint: the integer that an odd spelling seems to mean, or the range."""
    value: int | None = None
    if len(text) <= _LONGEST:
        if re.fullmatch(r"0[xX][0-9a-fA-F]+", text):
            value = int(text, 16)
        elif re.fullmatch(r"0[bB][01]+", text):
            value = int(text, 2)
        elif re.fullmatch(r"\+?[0-9]+(\.0*)?|[0-9]+(_[0-9]+)+", text):
            value = int(text.split(".")[0])
    if value is not None and minimum <= value <= maximum:
        return f"write it as {value}"
    other = ", or a name that `let` gives" if text.isidentifier() else ""
    return f"an integer from {minimum} to {maximum}{other}"
