"""Numbers for people: a few significant digits, a unit of the right size, and no exponents."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, isfinite, log10

_THOUSANDS = (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3))
_TIMES = (("us", 1e-6), ("ms", 1e-3), ("s", 1.0))


def significant(value: float, digits: int = 3) -> str:
    """``value`` rounded to ``digits`` significant digits: 2.86, 48, 12,400, 0.0314."""
    if value == 0 or not isfinite(value):
        return f"{value:g}"
    rounded = _rounded(value, digits)
    places = max(0, digits - 1 - floor(log10(abs(rounded))))
    text = f"{rounded:,.{places}f}"
    return text.rstrip("0").rstrip(".") if places else text


def numeral(value: float) -> str:
    """A number as its author wrote it, in full: 0.75, 1,000,000."""
    return significant(value, 15) if isfinite(value) and abs(value) >= 1e-9 else f"{value:g}"


def duration(seconds: float, digits: int = 3) -> str:
    """Microseconds up to 999, then milliseconds, then seconds."""
    return _scaled(seconds, tuple(reversed(_TIMES)), digits)


def count(number: float) -> str:
    """``412 G``, or a number below 1,000 as it is."""
    return _scaled(number, (*_THOUSANDS, ("", 1.0)), 3)


def size(count: float) -> str:
    """``1.07 GB``, of bytes."""
    units = ((f"{prefix}B", each) for prefix, each in _THOUSANDS)
    return _scaled(count, (*units, ("B", 1.0)), 3)


def _scaled(value: float, units: Sequence[tuple[str, float]], digits: int) -> str:
    """``value`` in the largest of ``units`` that gives at least 1."""
    for unit, each in units:
        if abs(_rounded(value / each, digits)) >= 1 or (unit, each) == units[-1]:
            return f"{significant(value / each, digits)} {unit}".rstrip()
    raise AssertionError("the last unit takes every value")


def _rounded(value: float, digits: int) -> float:
    return float(f"{value:.{digits - 1}e}")
