"""The thread that copies each element: an operand's tile in global memory, and beside it the shared
array."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from gemmgen.analyze.copied_boxes import copied_boxes
from gemmgen.analyze.copied_tiles import CopiedPiece, CopiedTile, Position, copied_tiles
from gemmgen.analyze.whole_tiles import boxed_tiles
from gemmgen.base.errors import UsageError
from gemmgen.base.record import record
from gemmgen.draw.boxed_tiles import drawing_of
from gemmgen.draw.marks import COLUMN, PLAIN, Cell, Drawing, Label, Mark, warp
from gemmgen.draw.scene import Scene
from gemmgen.ir.target import WARP

MOST, FIRST, LAST = 32, 16, 8
"""Rows or columns that are drawn; of more the first and the last."""
WIDTH, HEIGHT, GAP, BETWEEN = 20.0, 16.0, 32.0, 64.0
"""Pixels of an element, of a gap between rows or columns, and between two arrays."""
_LEFT, _TOP, _MARGIN = 48.0, 56.0, 24.0


@record
class Window:
    """The rows, or the columns, of an array that are drawn."""

    numbers: tuple[int, ...]

    def places(self, size: float) -> dict[int, float]:
        """The position of each row or column, if it takes ``size`` pixels."""
        found: dict[int, float] = {}
        at = 0.0
        for before, number in zip((-1, *self.numbers), self.numbers, strict=False):
            at += GAP if number != before + 1 else 0.0
            found[number] = at
            at += size
        return found

    def length(self, size: float) -> float:
        return list(self.places(size).values())[-1] + size


def window(count: int) -> Window:
    """All of ``count``, or the first and the last."""
    every = range(count)
    return Window(tuple(every if count <= MOST else (*every[:FIRST], *every[-LAST:])))


def draw(scene: Scene) -> Drawing:
    """For each operand the tile and the array: elements have the numbers of the threads that copy
    them, and the colors of their warps; or, of tiles that TMA copies, their boxes.

    Raises ``UsageError`` for a kernel that stages nothing in shared memory.
    """
    if boxed_tiles(scene.kernel):
        return drawing_of(scene.kernel.emitted.name, copied_boxes(scene.kernel))
    tiles = copied_tiles(scene.kernel)
    if not tiles:
        raise UsageError(
            "--what copies: this kernel copies no tile to shared memory; cache_shared stages tiles "
            "there"
        )
    marks: list[Mark] = []
    x = y = 0.0
    for tile in tiles:
        right, y = _tile(marks, tile, y)
        x = max(x, right)
    title = f"{scene.kernel.emitted.name}: copies of each thread for one step along k"
    text = "\n\n".join(part for tile in tiles for part in _texts(tile))
    description = " ".join(_sentence(tile) for tile in tiles)
    return Drawing(title, description, x + _MARGIN, y, tuple(marks), text)


def _tile(marks: list[Mark], tile: CopiedTile, y: float) -> tuple[float, float]:
    """Adds both arrays of an operand, beside each other or, if they are too wide for that, one
    below the other; where they end to the right, and below."""
    rows, columns = window(tile.shape[0]), window(tile.shape[1])
    marks += _array(_global(tile), tile.shape, tile.letters, tile.loads, _LEFT, y)
    beside = _LEFT + columns.length(WIDTH) + BETWEEN
    own = window(tile.array_shape[0]), window(tile.array_shape[1])
    x, down, wide = beside, y, own[1].length(WIDTH)
    if beside + wide + _MARGIN > COLUMN:
        x, down = _LEFT, y + _TOP + rows.length(HEIGHT) + 32
    marks += _array(_shared(tile), tile.array_shape, tile.array_letters, tile.stores, x, down)
    below = max(y + rows.length(HEIGHT), down + own[0].length(HEIGHT))
    return max(x + wide, beside - BETWEEN), _TOP + below + 32


def _global(tile: CopiedTile) -> str:
    return f"{tile.tensor}[{', '.join(tile.letters)}] in global memory"


def _shared(tile: CopiedTile) -> str:
    return f"{tile.array}[{', '.join(tile.array_letters)}]"


def _array(
    name: str,
    shape: tuple[int, int],
    letters: tuple[str, str],
    pieces: Sequence[CopiedPiece],
    x: float,
    y: float,
) -> Iterator[Mark]:
    """An array of ``shape``, in which ``pieces`` have their threads."""
    down, across = window(shape[0]), window(shape[1])
    tops, lefts = down.places(HEIGHT), across.places(WIDTH)
    top = y + _TOP
    yield Label(x, y + 16, name, size="large")
    for number, at in lefts.items():
        if number % 4 == 0 or number == shape[1] - 1:
            yield Label(x + at + WIDTH / 2, top - 10, str(number), "middle", "small", quiet=True)
    for number, at in tops.items():
        if number % 4 == 0 or number == shape[0] - 1:
            yield Label(x - 6, top + at + HEIGHT / 2, str(number), "end", "small", quiet=True)
    for row, column in _uncovered(shape, pieces, down, across):
        about = f"{letters[0]} {row}, {letters[1]} {column}: padding"
        yield Cell(x + lefts[column], top + tops[row], WIDTH, HEIGHT, PLAIN, "", about, dashed=True)
    for piece in sorted(pieces, key=lambda p: p.thread == 0):
        row, first = piece.at
        shown = [c for c in range(first, first + piece.width) if c in lefts]
        if row in tops and shown:
            yield _piece(piece, letters, x + lefts[shown[0]], top + tops[row], len(shown) * WIDTH)
    for places, size in ((lefts, WIDTH), (tops, HEIGHT)):
        for before, number in zip(places, list(places)[1:], strict=False):
            if number != before + 1:
                middle = (places[before] + size + places[number]) / 2
                wide = places is lefts
                yield Label(
                    x + (middle if wide else lefts[0] + WIDTH / 2),
                    top + (HEIGHT / 2 if wide else middle),
                    "...",
                    "middle",
                )


def _piece(piece: CopiedPiece, letters: tuple[str, str], x: float, y: float, width: float) -> Cell:
    row, first = piece.at
    last = f" to {first + piece.width - 1}" if piece.width > 1 else ""
    about = f"{letters[0]} {row}, {letters[1]} {first}{last}: thread {piece.thread}"
    meaning, text = warp(piece.thread // WARP), str(piece.thread)
    return Cell(x, y, width, HEIGHT, meaning, text, about, strong=piece.thread == 0)


def _uncovered(
    shape: tuple[int, int], pieces: Iterable[CopiedPiece], down: Window, across: Window
) -> Iterator[Position]:
    """The drawn elements that no thread writes."""
    covered = {(p.at[0], p.at[1] + e) for p in pieces for e in range(p.width)}
    for row in down.numbers:
        for column in across.numbers:
            if (row, column) not in covered:
                yield row, column


def _texts(tile: CopiedTile) -> Iterator[str]:
    """Both arrays as tables of thread numbers."""
    for name, shape, pieces in (
        (_global(tile), tile.shape, tile.loads),
        (_shared(tile), tile.array_shape, tile.stores),
    ):
        owners = {(p.at[0], p.at[1] + e): p.thread for p in pieces for e in range(p.width)}
        lines = [f"{name}, thread by thread", "     " + _line(window(shape[1]).numbers)]
        before = -1
        for row in window(shape[0]).numbers:
            lines += ["  ..."] if row != before + 1 else []
            numbers = [owners.get((row, column)) for column in window(shape[1]).numbers]
            lines.append(f"{row:>4} {_line(numbers, shape[1])}")
            before = row
        yield "\n".join(lines)


def _line(numbers: Sequence[int | None], count: int | None = None) -> str:
    cells = [f"{'.' if number is None else number:>4}" for number in numbers]
    if (count or (numbers[-1] or 0) + 1) > MOST:
        cells.insert(FIRST, " ...")
    return "".join(cells)


def _sentence(tile: CopiedTile) -> str:
    """What a thread moves, and how the array differs from the tile."""
    rows, columns = tile.shape
    threads = {piece.thread for piece in tile.loads}
    each = sum(piece.width for piece in tile.loads if piece.thread == min(threads))
    loads, stores = (_widths(pieces) for pieces in (tile.loads, tile.stores))
    transposed = "" if tile.letters == tile.array_letters else ", transposed"
    pad = tile.array_shape[1] - tile.shape[tile.letters.index(tile.array_letters[1])]
    padded = f", rows padded by {pad}" if pad else ""
    permuted = ", chunks of its rows permuted" if is_permuted(tile) else ""
    return (
        f"{tile.tensor}: {rows} x {columns} elements by {len(threads)} threads, {each} each, "
        f"loaded {loads} at a time and stored {stores} at a time "
        f"in {_shared(tile)}{transposed}{padded}{permuted}."
    )


def _widths(pieces: Sequence[CopiedPiece]) -> str:
    return " or ".join(str(width) for width in sorted({piece.width for piece in pieces}))


def is_permuted(tile: CopiedTile) -> bool:
    """Whether an element's place in the array differs from its indices."""
    straight = tile.letters == tile.array_letters
    return any(place != (at if straight else at[::-1]) for at, place in tile.where)
