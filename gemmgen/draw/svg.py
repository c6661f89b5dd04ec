"""A drawing as an SVG file: for light and dark, with words for those who do not see it."""

from __future__ import annotations

from hashlib import sha256
from html import escape
from math import hypot
from textwrap import wrap
from typing import TYPE_CHECKING

from gemmgen.draw.marks import Cell, Drawing, Label, Mark, Stroke
from gemmgen.draw.palette import ROOT, style_sheet
from gemmgen.draw.plots import plot_svg

if TYPE_CHECKING:
    from svg import Element

_HEAD = 7.0
"""Pixels of an arrow's head."""
_ABOVE, _LINE, _WIDE = 36.0, 16.0, 6.5
"""Pixels above a drawing, for its title; of a line below it; of a character there, on average."""


def svg_of(drawing: Drawing, *, captions: bool = True) -> str:
    """The file; the same drawing gives the same bytes.  It can be inlined in a page as it is.

    With ``captions`` its title is written above it and its description below.
    """
    if drawing.plot:
        return plot_svg(drawing, captions=captions)
    import svg

    name = f"gemmgen-{sha256(repr(drawing).encode()).hexdigest()[:10]}"
    title, desc = f"{name}-title", f"{name}-desc"
    style = style_sheet(m.meaning.key for m in drawing.marks if not isinstance(m, Label))
    lines = wrap(drawing.description, int(drawing.width / _WIDE)) if captions else []
    top = _ABOVE if captions else 0.0
    height = top + drawing.height + _LINE * len(lines) + (_LINE if lines else 0)
    elements: list[Element] = [
        svg.Title(id=title, text=escape(drawing.title)),
        svg.Desc(id=desc, text=escape(drawing.description)),
        svg.Style(text=style),
        svg.Rect(class_=["background"], y=_n(-top), width=_n(drawing.width), height=_n(height)),
    ]
    marks: list[Mark] = [Label(8, -top / 2, drawing.title, size="large")] if captions else []
    for at, line in enumerate(lines):
        marks.append(Label(8, drawing.height + _LINE * (at + 0.5), line))
    for mark in (*drawing.marks, *marks):
        elements += _elements(mark)
    file = svg.SVG(
        class_=[ROOT],
        width=_n(drawing.width),
        height=_n(height),
        viewBox=svg.ViewBoxSpec(0, _n(-top), _n(drawing.width), _n(height)),
        elements=elements,
        extra={"role": "img", "aria-labelledby": f"{title} {desc}"},
    )
    return f"{file.as_str()}\n"


def _elements(mark: Mark) -> list[Element]:
    if isinstance(mark, Cell):
        return _cell(mark)
    return [_label(mark)] if isinstance(mark, Label) else _stroke(mark)


def _cell(cell: Cell) -> list[Element]:
    import svg

    found: list[Element] = [
        svg.Rect(
            x=_n(cell.x),
            y=_n(cell.y),
            width=_n(cell.width),
            height=_n(cell.height),
            class_=_classes(cell),
            elements=[svg.Title(text=escape(cell.about))] if cell.about else None,
        )
    ]
    if cell.text:
        middle = (cell.x + cell.width / 2, cell.y + cell.height / 2)
        found.append(_label(Label(*middle, cell.text, "middle", cell.size)))
    return found


def _label(label: Label) -> Element:
    import svg

    known = [label.anchor] if label.anchor != "middle" else []
    known += [label.size] if label.size != "normal" else []
    known += ["quiet"] if label.quiet else []
    return svg.Text(
        x=_n(label.x), y=_n(label.y), class_=known or None, text=escape(label.text, quote=False)
    )


def _stroke(stroke: Stroke) -> list[Element]:
    import svg

    line = [svg.Point(_n(x), _n(y)) for x, y in stroke.points]
    found: list[Element] = [svg.Polyline(points=line, class_=_classes(stroke))]
    if stroke.arrow:
        (x0, y0), (x1, y1) = stroke.points[-2:]
        length = hypot(x1 - x0, y1 - y0) or 1.0
        dx, dy = (x1 - x0) / length * _HEAD, (y1 - y0) / length * _HEAD
        x, y = x1 - dx, y1 - dy
        corners = (x1, y1), (x - dy / 2, y + dx / 2), (x + dy / 2, y - dx / 2)
        head = [svg.Point(_n(x), _n(y)) for x, y in corners]
        found.append(svg.Polygon(points=head, class_=[stroke.meaning.key]))
    return found


def _classes(mark: Cell | Stroke) -> list[str]:
    found = [mark.meaning.key]
    found += ["strong"] if mark.strong else []
    return [*found, "dashed"] if mark.dashed else found


def _n(number: float) -> float | int:
    """Two decimals, and none for a whole number: the same digits everywhere."""
    rounded = round(number, 2)
    return int(rounded) if rounded == int(rounded) else rounded
