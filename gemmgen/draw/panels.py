"""A grid of numbers as a part of a drawing: its regions, with the indices at which they begin."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from gemmgen.base.record import record
from gemmgen.draw.grids import Grid, Region
from gemmgen.draw.marks import Cell, Label, Mark
from gemmgen.draw.owners import NO_THREAD

_ROOM, _MOST = 304.0, 672.0
"""Pixels for a panel's longer side; what it may take so that its regions can be read."""
_FINE, _COARSE = 16.0, 32.0
"""Pixels that a region has at least, if there is room, and an element at most."""
_APART = 28.0, 14.0
"""Pixels between numbers of columns, and of rows."""


@record
class Panel:
    """``letters`` name the rows and the columns; ``cell`` makes a region's cell of its number and
    what it is, ``m 0..3, n 8``, without a place."""

    name: str
    letters: tuple[str, str]
    grid: Grid
    cell: Callable[[int, str], Cell]

    @property
    def scale(self) -> tuple[float, float]:
        """Pixels of an element, across and down."""
        sides = [_extents(self.grid.columns), _extents(self.grid.rows)]
        even = min(_COARSE, _ROOM / max(whole for whole, _ in sides))
        across, down = (min(max(even, _FINE / least), _MOST / whole) for whole, least in sides)
        return across, down

    @property
    def size(self) -> tuple[float, float]:
        """Width and height, without its name and its indices."""
        (across, down), (wide, _), (tall, _) = (
            self.scale,
            _extents(self.grid.columns),
            _extents(self.grid.rows),
        )
        return across * wide, down * tall

    def marks(self, x: float, y: float) -> Iterator[Mark]:
        """Its regions from ``x``, ``y`` on; its name above, indices above and to the left."""
        across, down = self.scale
        left, top = self.grid.columns[0].start, self.grid.rows[0].start
        cells: list[Cell] = []
        for region in self.grid.regions():
            if region.number != NO_THREAD:
                at = x + across * (region.n.start - left), y + down * (region.m.start - top)
                size = across * len(region.n), down * len(region.m)
                plain = self.cell(region.number, self._where(region))
                cells.append(_placed(plain, *at, *size))
        yield from sorted(cells, key=lambda cell: cell.strong)
        yield Label(x, y - 34, self.name)
        yield Label(x - 8, y - 10, " \\ ".join(self.letters), "end", "small", quiet=True)
        for number in _spaced(self.grid.columns, across, _APART[0]):
            yield Label(x + across * (number - left), y - 10, str(number), size="small", quiet=True)
        for number in _spaced(self.grid.rows, down, _APART[1]):
            place = y + down * (number - top) + 7
            yield Label(x - 8, place, str(number), "end", "small", quiet=True)

    def table(self) -> str:
        """The panel as characters: a line for each run of equal rows."""
        rows, columns = self.letters
        heads = [_range(rows, row) for row in self.grid.rows]
        names = [str(column.start) for column in self.grid.columns]
        texts = [
            ["." if n == NO_THREAD else self.cell(n, "").text for n in line]
            for line in self.grid.numbers
        ]
        wide = max(len(word) for words in (names, *texts) for word in words) + 1
        first = max(len(columns), *map(len, heads))
        lines = [self.name, columns.rjust(first) + "".join(x.rjust(wide) for x in names)]
        for head, words in zip(heads, texts, strict=True):
            lines.append(head.ljust(first) + "".join(x.rjust(wide) for x in words))
        return "\n".join(lines)

    def _where(self, region: Region) -> str:
        rows, columns = self.letters
        return f"{_range(rows, region.m)}, {_range(columns, region.n)}"


def _placed(cell: Cell, x: float, y: float, width: float, height: float) -> Cell:
    """Without its text where that has no room."""
    text = cell.text if width >= 7 * len(cell.text) and height >= 12 else ""
    return Cell(x, y, width, height, cell.meaning, text, cell.about, cell.strong)


def _extents(ranges: tuple[range, ...]) -> tuple[int, int]:
    """Of all together, and of the smallest."""
    return ranges[-1].stop - ranges[0].start, min(map(len, ranges))


def _range(letter: str, one: range) -> str:
    return f"{letter} {one.start}" if len(one) == 1 else f"{letter} {one.start}..{one.stop - 1}"


def _spaced(ranges: tuple[range, ...], scale: float, apart: float) -> Iterator[int]:
    """Where ranges begin, those that are far enough from the one before."""
    last: float | None = None
    for one in ranges:
        if last is None or one.start * scale - last >= apart:
            last = one.start * scale
            yield one.start
