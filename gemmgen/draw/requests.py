"""Requests of a warp, as maps of their threads: banks by wavefronts, or elements by sectors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gemmgen.analyze.maps import NO_THREAD, Picture
from gemmgen.draw.marks import CONFLICT, PLAIN, Cell, Drawing, Label, Mark, thread

WIDTH, HEIGHT = 19.0, 16.0
"""Pixels of a cell."""
_CHARACTER = 7.0
"""Pixels of a character of a title."""
_LEFT, _TOP, _BETWEEN = 80.0, 56.0, 32.0


def requests_drawing(name: str, pictures: Sequence[Picture]) -> Drawing:
    """The pictures of ``explain --map``, under one another."""
    marks: list[Mark] = []
    y = 0.0
    for picture in pictures:
        marks += request("" if picture.ways == 1 else conflict(picture), picture, 0.0, y)
        y += size_of(picture)[1]
    description = " ".join(f"{p.title}: {'; '.join(p.notes)}." for p in pictures)
    width = max(max(size_of(p)[0], _LEFT + _CHARACTER * len(p.title)) for p in pictures)
    return Drawing(f"{name}: requests of a warp", description, width, y, tuple(marks))


def size_of(picture: Picture) -> tuple[float, float]:
    """Pixels to the right and down, with the room between two pictures."""
    width = _LEFT + WIDTH * len(picture.columns) + _BETWEEN
    return width, _TOP + HEIGHT * len(picture.rows) + _BETWEEN


def request(heading: str, picture: Picture, x: float, y: float) -> Iterator[Mark]:
    """A request, cell by cell with its threads; the upper left corner is at ``x``, ``y``."""
    left, top = x + _LEFT, y + _TOP
    if heading:
        yield Label(left, y + 8, heading, size="large")
    yield Label(left, y + 26, picture.title, quiet=True)
    for at, column in enumerate(picture.columns):
        where = left + (at + 0.5) * WIDTH
        yield Label(where, top - 8, column, "middle", "small", quiet=True)
    for row_at, row in enumerate(picture.rows):
        at_y = top + row_at * HEIGHT
        yield Label(left - 8, at_y + HEIGHT / 2, row.label.strip(), "end", "small")
        yield Cell(left, at_y, WIDTH * len(row.lanes), HEIGHT, PLAIN)
        for at, lane in enumerate(row.lanes):
            if lane != NO_THREAD:
                about = f"{row.label.strip()}, {picture.columns[at]}: thread {lane}"
                meaning = CONFLICT if row.again else thread(lane)
                yield Cell(left + at * WIDTH, at_y, WIDTH, HEIGHT, meaning, str(lane), about)


def conflict(picture: Picture) -> str:
    """``2-way conflict``."""
    return "no conflict" if picture.ways == 1 else f"{picture.ways}-way conflict"
