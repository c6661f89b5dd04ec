"""A letter of the problem cut into parts, and where they lie in a drawing."""

from __future__ import annotations

from gemmgen.base.record import record

MOST = 8
"""Parts of a letter that are drawn; of more the first, and the last after a gap."""
_FIRST = 6
GAP = 32.0
"""Pixels in the place of parts that are left out."""
_LEAST = 16.0


@record
class Part:
    """The elements ``begin`` to ``stop`` - 1 of a letter, and the pixels that they take."""

    number: int
    begin: int
    stop: int
    at: float
    length: float


@record
class Cut:
    """``parts`` are those drawn, out of ``count``; together they take ``length`` pixels."""

    parts: tuple[Part, ...]
    count: int
    length: float

    @property
    def gaps(self) -> tuple[float, ...]:
        """The middle of each gap."""
        pairs = zip(self.parts, self.parts[1:], strict=False)
        return tuple(x.at + x.length + GAP / 2 for x, y in pairs if y.number != x.number + 1)


def cut(extent: int, size: int, pixels: float, *, ragged_first: bool = False) -> Cut:
    """``extent`` elements in parts of ``size``, a whole one ``pixels`` long; the last one may be
    ragged, or the first."""
    count = max(1, -(-extent // size))
    before = count * size - extent if ragged_first else 0
    numbers = list(range(count)) if count <= MOST else [*range(_FIRST), count - 1]
    parts: list[Part] = []
    at = 0.0
    for number in numbers:
        if parts and number != parts[-1].number + 1:
            at += GAP
        begin = max(0, number * size - before)
        stop = min(extent, (number + 1) * size - before)
        length = max(_LEAST, round(pixels * (stop - begin) / size / _LEAST) * _LEAST)
        parts.append(Part(number, begin, stop, at, length))
        at += length
    return Cut(tuple(parts), count, at)
