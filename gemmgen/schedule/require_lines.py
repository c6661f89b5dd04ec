"""Checks ``require``: a limit on what the kernel uses."""

from __future__ import annotations

from gemmgen.base.errors import Refusal
from gemmgen.base.source import Span, shown
from gemmgen.schedule.model import Require
from gemmgen.schedule.numbers import integer
from gemmgen.schedule.raw import RawRequire, Word
from gemmgen.schedule.words import QUANTITIES, SAME_BITS, UNITS, close


def check_require(raw: RawRequire) -> Require:
    """``require shared <= 48KiB``."""
    name, op = raw.quantity.text, raw.op.text
    if name == SAME_BITS:
        raise Refusal(
            f"{SAME_BITS} is not a number that {op} compares",
            at=raw.op.span,
            hint=f"require {SAME_BITS} over m",
        )
    if name not in QUANTITIES:
        near = close(name, QUANTITIES)
        raise Refusal(
            f"unknown quantity `{shown(name)}`",
            at=raw.quantity.span,
            hint=(f"did you mean {near}? " if near else "")
            + f"require takes {', '.join(QUANTITIES)}, or {SAME_BITS} over letters",
        )
    if op not in {"<=", "=="}:
        raise Refusal(
            f"require takes <= or ==, not {op}",
            at=raw.op.span,
            hint=f"require {name} <= {shown(raw.limit.text)}",
        )
    limit, unit = raw.limit, raw.unit
    digits = limit.text.rstrip("BKMGTkmgibytes")
    if unit is None and digits and digits != limit.text:
        middle = limit.span.start + len(digits)
        unit = Word(limit.text[len(digits) :], Span(middle, limit.span.end))
        limit = Word(digits, Span(limit.span.start, middle))
    factor = _unit(name, unit) if unit else 1
    return Require(name, op, integer(limit, f"the limit of {name}", 0, 1 << 30) * factor, raw.span)


def _unit(quantity: str, unit: Word) -> int:
    if quantity != "shared":
        raise Refusal(f"{quantity} have no unit", at=unit.span, hint="give the number alone")
    if unit.text not in UNITS:
        raise Refusal(
            f"unknown unit `{shown(unit.text)}`",
            at=unit.span,
            hint="B, or KiB (1024 bytes): require shared <= 48KiB",
        )
    return UNITS[unit.text]
