"""A drawing: cells, labels and paths in a plane, coloured by what they mean.

``svg`` and ``terminal`` render it; neither knows what is drawn.
"""

from __future__ import annotations

from typing import Literal

from gemmgen.base.record import record

Anchor = Literal["start", "middle", "end"]
Size = Literal["small", "normal", "large"]
Name = Literal[
    "plain", "A", "B", "C", "load", "store", "compute", "wait", "conflict", "thread", "warp"
]
COLUMN = 736.0
"""Pixels of a page's column on a tablet: wider drawings are folded, so that text is not shrunk."""
TINTS = 8
"""Colours of threads and warps; a number beyond them begins again."""


@record
class Meaning:
    """What a color means; ``number`` distinguishes threads or warps."""

    name: Name
    number: int = 0

    @property
    def key(self) -> str:
        """The entry of the palette: ``A``, ``thread3``; rows of threads begin with another."""
        if self.name not in ("thread", "warp"):
            return self.name
        return f"thread{(self.number + self.number // TINTS) % TINTS}"


PLAIN = Meaning("plain")
"""Not filled."""
A, B, C = Meaning("A"), Meaning("B"), Meaning("C")
"""The operands by their roles, whatever their names are."""
LOAD, STORE, COMPUTE, WAIT = Meaning("load"), Meaning("store"), Meaning("compute"), Meaning("wait")
CONFLICT = Meaning("conflict")


def thread(number: int) -> Meaning:
    return Meaning("thread", number)


def warp(number: int) -> Meaning:
    return Meaning("warp", number)


@record
class Cell:
    """A rectangle, its upper left corner at ``x``, ``y``: a tile, an element, an interval of time.

    ``text`` is centered in it; ``about`` is shown where a pointer rests on it.  ``strong`` cells
    stand out, ``dashed`` ones have no substance: what lies outside a matrix, or is not there yet.
    """

    x: float
    y: float
    width: float
    height: float
    meaning: Meaning = PLAIN
    text: str = ""
    about: str = ""
    strong: bool = False
    dashed: bool = False
    size: Size = "small"


@record
class Label:
    """A line of text; ``y`` is its middle."""

    x: float
    y: float
    text: str
    anchor: Anchor = "start"
    size: Size = "normal"
    quiet: bool = False


@record
class Stroke:
    """A line through ``points``, with an ``arrow`` at its end if wanted."""

    points: tuple[tuple[float, float], ...]
    meaning: Meaning = PLAIN
    arrow: bool = False
    dashed: bool = False
    strong: bool = False


Mark = Cell | Label | Stroke


SeriesStyle = Literal["line", "reference", "limit", "point", "bound"]
"""A measured line with markers; the one that others are compared with; a bound; a single value; the
bound of the line before."""


@record
class Series:
    """``points`` (across, up) of the name in the legend."""

    name: str
    points: tuple[tuple[float, float], ...]
    style: SeriesStyle = "line"


@record
class Axes:
    """``across`` and ``up`` name the axes.  With ``categories`` points are across at 0, 1, ..."""

    across: str
    up: str
    series: tuple[Series, ...]
    categories: tuple[str, ...] = ()
    logarithmic: bool = False


@record
class Drawing:
    """``marks`` are drawn in their order, in pixels, x to the right and y down from the upper left
    corner.

    ``description`` says in a sentence or two what is seen, with its numbers, for those who do not
    see it.  ``text`` is the drawing as lines of characters; if it is empty, ``terminal`` makes them
    from the marks.  A ``plot`` has axes, one below the other, in place of marks.
    """

    title: str
    description: str
    width: float
    height: float
    marks: tuple[Mark, ...]
    text: str = ""
    plot: tuple[Axes, ...] = ()

    @property
    def cells(self) -> tuple[Cell, ...]:
        return tuple(mark for mark in self.marks if isinstance(mark, Cell))
