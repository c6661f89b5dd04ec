"""A drawing as lines of characters: cells as boxes, arrows by their heads."""

from __future__ import annotations

from gemmgen.draw.marks import Cell, Drawing, Label, Stroke

ACROSS, DOWN = 8, 16
"""Pixels of a character."""


def text_of(drawing: Drawing) -> str:
    """The drawing's own text, or else its marks; under its title, followed by its description."""
    return f"{drawing.title}\n\n{body_of(drawing)}\n\n{drawing.description}\n"


def body_of(drawing: Drawing) -> str:
    """The same without title and description."""
    return (drawing.text or _canvas(drawing)).rstrip()


class _Canvas:
    """Lines of characters that are written over."""

    def __init__(self, width: int, height: int):
        self._lines = [[" "] * width for _ in range(height)]

    def put(self, row: int, column: int, text: str) -> None:
        """What lies outside is cut off."""
        if 0 <= row < len(self._lines):
            line = self._lines[row]
            for at, char in enumerate(text, column):
                if 0 <= at < len(line):
                    line[at] = char

    def lines(self) -> str:
        return "\n".join("".join(line).rstrip() for line in self._lines)


def _canvas(drawing: Drawing) -> str:
    canvas = _Canvas(round(drawing.width / ACROSS) + 1, round(drawing.height / DOWN) + 1)
    for mark in drawing.marks:
        if isinstance(mark, Cell):
            _box(canvas, mark)
        elif isinstance(mark, Stroke):
            _line(canvas, mark)
    for mark in drawing.marks:
        if isinstance(mark, Label):
            _words(canvas, mark)
        elif isinstance(mark, Cell):
            _text(canvas, mark)
    return canvas.lines()


def _words(canvas: _Canvas, label: Label) -> None:
    back = {"start": 0, "middle": len(label.text) // 2, "end": len(label.text)}[label.anchor]
    canvas.put(int(label.y // DOWN), round(label.x / ACROSS) - back, label.text)


def _edges(cell: Cell) -> tuple[int, int, int, int]:
    """Left, right, top and bottom."""
    left, right = round(cell.x / ACROSS), round((cell.x + cell.width) / ACROSS)
    return left, right, round(cell.y / DOWN), round((cell.y + cell.height) / DOWN)


def _box(canvas: _Canvas, cell: Cell) -> None:
    """A cell of less than a character is a point."""
    left, right, top, bottom = _edges(cell)
    if cell.strong and right - left <= 2 and bottom - top <= 1 and not cell.text:
        canvas.put(top, left, "*")
        return
    flat, upright = ("=", "#") if cell.strong else (".", ":") if cell.dashed else ("-", "|")
    edge = "+" + flat * (right - left - 1) + "+"
    canvas.put(top, left, edge)
    canvas.put(bottom, left, edge)
    for row in range(top + 1, bottom):
        canvas.put(row, left, upright)
        canvas.put(row, right, upright)


def _text(canvas: _Canvas, cell: Cell) -> None:
    left, right, top, bottom = _edges(cell)
    room = right - left - 1
    if 0 < len(cell.text) <= room:
        canvas.put((top + bottom) // 2, left + 1 + (room - len(cell.text)) // 2, cell.text)


def _line(canvas: _Canvas, stroke: Stroke) -> None:
    for (x0, y0), (x1, y1) in zip(stroke.points, stroke.points[1:], strict=False):
        column, row = round(min(x0, x1) / ACROSS), round(min(y0, y1) / DOWN)
        if row == round(max(y0, y1) / DOWN):
            canvas.put(row, column, "-" * (round(max(x0, x1) / ACROSS) - column))
        elif column == round(max(x0, x1) / ACROSS):
            for at in range(row, round(max(y0, y1) / DOWN)):
                canvas.put(at, column, "|")
    if stroke.arrow:
        (x0, y0), (x1, y1) = stroke.points[-2:]
        sideways = abs(x1 - x0) >= abs(y1 - y0)
        head = (">" if x1 > x0 else "<") if sideways else ("v" if y1 > y0 else "^")
        canvas.put(round(y1 / DOWN), round(x1 / ACROSS), head)
