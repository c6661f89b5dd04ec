"""Drawings of one kind under one another, to be compared."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from gemmgen.draw.marks import Drawing, Label, Mark, Stroke
from gemmgen.draw.terminal import body_of

_HEADING, _BETWEEN = 40.0, 24.0
"""Pixels of a drawing's name, and below each drawing."""


def stacked(title: str, drawings: Sequence[tuple[str, Drawing]]) -> Drawing:
    """All of ``drawings``, each under its name."""
    marks: list[Mark] = []
    y = 0.0
    for name, drawing in drawings:
        marks.append(Label(8, y + _HEADING / 2, name, size="large"))
        marks += moved(drawing.marks, 0, y + _HEADING)
        y += _HEADING + drawing.height + _BETWEEN
    described = " ".join(f"{name}: {d.description}" for name, d in drawings)
    text = "\n\n".join(f"{name}\n\n{body_of(d)}" for name, d in drawings)
    return Drawing(title, described, max(d.width for _, d in drawings), y, tuple(marks), text)


def moved(marks: Iterable[Mark], x: float, y: float) -> tuple[Mark, ...]:
    """``marks`` further to the right, and down."""
    return tuple(
        (
            replace(mark, points=tuple((px + x, py + y) for px, py in mark.points))
            if isinstance(mark, Stroke)
            else replace(mark, x=mark.x + x, y=mark.y + y)
        )
        for mark in marks
    )
