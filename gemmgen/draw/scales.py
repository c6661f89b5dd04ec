"""Axes of charts: where a number lies, and which numbers are written beside an axis."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, floor, log10

from gemmgen.base.record import record
from gemmgen.base.units import numeral
from gemmgen.draw.marks import Label, Mark, Stroke

_LIFT = 10.0
"""Pixels from an axis to its numbers."""


@record
class Scale:
    """``low`` lies at pixel ``start``, ``high`` at ``stop``; on a ``logarithmic`` one both are
    greater than 0."""

    low: float
    high: float
    start: float
    stop: float
    logarithmic: bool = False

    def at(self, value: float) -> float:
        if self.logarithmic:
            part = log10(value / self.low) / log10(self.high / self.low)
        else:
            part = (value - self.low) / (self.high - self.low)
        return self.start + part * (self.stop - self.start)

    @property
    def ticks(self) -> tuple[float, ...]:
        """1, 2 and 5 times powers of ten; if that is too many on a logarithmic scale, the powers
        alone.  On a linear one at most six steps."""
        if self.logarithmic:
            powers = range(floor(log10(self.low)), ceil(log10(self.high)) + 1)
            each = (1, 2, 5) if len(powers) <= 5 else (1,)
            found = (factor * 10.0**power for power in powers for factor in each)
            return tuple(x for x in found if self.low <= x <= self.high)
        step = _step((self.high - self.low) / 6)
        first = ceil(self.low / step)
        return tuple(step * at for at in range(first, floor(self.high / step) + 1))


def _step(least: float) -> float:
    """1, 2 or 5 times a power of ten, at least ``least``."""
    power = 10.0 ** floor(log10(least))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least * (1 - 1e-9))


def across(scale: Scale, y: float, name: str) -> Iterator[Mark]:
    """An axis to the right at ``y``, with its numbers and its name below."""
    yield Stroke(((scale.start, y), (scale.stop, y)))
    for tick in scale.ticks:
        x = scale.at(tick)
        yield Stroke(((x, y), (x, y + 4)))
        yield Label(x, y + 4 + _LIFT, numeral(tick), "middle", "small")
    yield Label((scale.start + scale.stop) / 2, y + 4 + 3 * _LIFT, name, "middle")


def upwards(scale: Scale, x: float, name: str) -> Iterator[Mark]:
    """An axis upwards at ``x``, with its numbers; its name above."""
    yield Stroke(((x, scale.start), (x, scale.stop)))
    for tick in scale.ticks:
        y = scale.at(tick)
        yield Stroke(((x - 4, y), (x, y)))
        yield Label(x - _LIFT / 2 - 2, y, numeral(tick), "end", "small")
    yield Label(x, scale.stop - 1.4 * _LIFT, name)


def apart(wanted: dict[str, float], least: float) -> dict[str, float]:
    """Places of labels near those ``wanted``, from top to bottom ``least`` pixels apart or more."""
    found: dict[str, float] = {}
    last = float("-inf")
    for name, y in sorted(wanted.items(), key=lambda item: item[1]):
        last = found[name] = max(y, last + least)
    return found
