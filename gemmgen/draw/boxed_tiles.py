"""The TMA boxes of a tile in global memory, and beside it their places in shared memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gemmgen.analyze.copied_boxes import BoxedTile, CopiedBox
from gemmgen.base.source import counted
from gemmgen.draw.marks import COLUMN, Cell, Drawing, Label, Mark, thread
from gemmgen.ir.buffers import Swizzle

LONGEST, LEAST = 512.0, (80.0, 32.0)
"""Pixels of the longest side of a tile, and of a box at least, across and down."""
_LEFT, _TOP, _BELOW, _BETWEEN = 48.0, 64.0, 32.0, 64.0
_MARGIN, _WORD = 24.0, 9.0
"""Pixels to the right of everything, and of a character of a name."""


def drawing_of(name: str, tiles: Sequence[BoxedTile]) -> Drawing:
    """Both arrays of each tile of the kernel ``name``, one tile below the other."""
    marks: list[Mark] = []
    y = 0.0
    for tile in tiles:
        scale = _scale(tile, LONGEST / max(max(t.shape) for t in tiles))
        across, down = scale
        letters = ", ".join(tile.letters)
        name_of_tile = f"{tile.source}[{letters}] in global memory{_of_part(tile, 'plane')}"
        name_of_stage = f"a stage of {tile.array}[{letters}]{_of_part(tile, 'tile')}"
        wide = max(across * tile.shape[1], _WORD * max(len(name_of_tile), len(name_of_stage)))
        beside, below = _LEFT + wide + _BETWEEN, y
        if beside + wide + _MARGIN > COLUMN:
            beside, below = _LEFT, y + _TOP + down * tile.shape[0] + _BELOW
        marks += _labels(name_of_tile, tile, scale, _LEFT, y)
        marks += _labels(name_of_stage, tile, scale, beside, below)
        for number, box in enumerate(tile.boxes):
            read, landed = _read(tile, number, box), _landed(tile, number, box)
            for x, top, (text, about) in ((_LEFT, y, read), (beside, below, landed)):
                at = x + across * box.at[1], top + _TOP + down * box.at[0]
                size = across * box.columns, down * box.rows
                marks.append(Cell(*at, *size, thread(number), text, about))
        y = below + _TOP + down * tile.shape[0] + _BELOW
        if tile.swizzle is not None:
            marks += _swizzled(tile, tile.swizzle, y)
            y += _TOP + 2 * _CHUNK_ROW + _CHUNK_ROW * rows_of(tile.swizzle) + _BELOW
    ends = [m.x + m.width for m in marks if isinstance(m, Cell)]
    ends += [
        m.x + _WORD * len(m.text) for m in marks if isinstance(m, Label) and m.anchor == "start"
    ]
    width = max(ends) + _MARGIN
    title = f"{name}: TMA copies for one step along k"
    return Drawing(title, " ".join(_sentences(tiles)), width, y, tuple(marks))


def _scale(tile: BoxedTile, even: float) -> tuple[float, float]:
    """Pixels of an element across and down."""
    box = tile.boxes[0]
    return max(even, LEAST[0] / box.columns), max(even, LEAST[1] / box.rows)


def _labels(
    name: str, tile: BoxedTile, scale: tuple[float, float], x: float, y: float
) -> Iterator[Mark]:
    """The array's name, and where boxes begin and the tile ends."""
    rows, columns = ({box.at[axis] for box in tile.boxes} | {tile.shape[axis]} for axis in (0, 1))
    yield Label(x, y + 16, name, size="large")
    for column in sorted(columns):
        at = x + scale[0] * column
        yield Label(at, y + _TOP - 16, str(column), "middle", "small", quiet=True)
    for row in sorted(rows):
        at = y + _TOP + scale[1] * row
        yield Label(x - 8, at, str(row), "end", "small", quiet=True)


def _read(tile: BoxedTile, number: int, box: CopiedBox) -> tuple[str, str]:
    row, column = box.at
    ranges = f"{_range(row, box.rows)}, {_range(column, box.columns)}"
    by = f", block {box.block}" if _is_shared(tile) else ""
    return (
        f"box {number}{by}",
        f"box {number}{by}: {tile.source}[{ranges}]{_of_part(tile, 'plane')}",
    )


def _landed(tile: BoxedTile, number: int, box: CopiedBox) -> tuple[str, str]:
    begin, size = box.place * tile.size, box.rows * box.columns * tile.size
    return f"byte {begin}", f"box {number}: {size} bytes from byte {begin} of the stage on"


def _of_part(tile: BoxedTile, what: str) -> str:
    """The plane in memory, or the tile of a stage, that is drawn if a tile has several terms."""
    return f", the {what} of part 0" if tile.parts > 1 else ""


def _range(first: int, count: int) -> str:
    return f"{first}..{first + count - 1}" if count > 1 else str(first)


def _is_shared(tile: BoxedTile) -> bool:
    """Whether several blocks of a cluster request its boxes."""
    return len({box.block for box in tile.boxes}) > 1


_CHUNK, _CHUNK_ROW = 38.0, 18.0
"""Pixels of a chunk of 16 bytes, and of a row of them."""


def rows_of(swizzle: Swizzle) -> int:
    """Rows after which the permutation begins again."""
    return swizzle.by * swizzle.every


def _swizzled(tile: BoxedTile, swizzle: Swizzle, y: float) -> Iterator[Mark]:
    """A swizzle atom: the chunks of its rows in the matrix, and beside them in shared memory."""
    count = swizzle.by
    size = swizzle.chunk * tile.size
    right = _LEFT + max(count * _CHUNK, 296.0) + 48
    yield Label(_LEFT, y + 16, f"a swizzle atom: chunks of {size} bytes", size="large")
    yield Label(right, y + 16, f"as stored in {tile.array}", size="large")
    top = y + _TOP
    for row in range(rows_of(swizzle)):
        at = top + row * _CHUNK_ROW
        for x in (_LEFT, right):
            yield Label(x - 8, at + _CHUNK_ROW / 2, str(row), "end", "small", quiet=True)
        for chunk in range(count):
            place = swizzle.column(row, chunk * swizzle.chunk) // swizzle.chunk
            for x, column in ((_LEFT, chunk), (right, place)):
                about = f"row {row}, chunk {chunk}: stored as chunk {place}"
                box = (x + column * _CHUNK, at, _CHUNK, _CHUNK_ROW)
                yield Cell(*box, thread(chunk), str(chunk), about)


def _sentences(tiles: Sequence[BoxedTile]) -> Iterator[str]:
    """The number and size of the boxes, who requests them, and what the barrier counts."""
    for tile in tiles:
        box, sides = tile.boxes[0], " x ".join(map(str, tile.shape))
        boxes = "one TMA box" if len(tile.boxes) == 1 else f"{len(tile.boxes)} TMA boxes"
        parts = f"{tile.parts} parts of " if tile.parts > 1 else ""
        each = " for each part" if tile.parts > 1 else ""
        blocks = len({box.block for box in tile.boxes})
        shared = (
            f"; {blocks} blocks of the cluster request one each, multicast" if blocks > 1 else ""
        )
        swizzled = "" if tile.swizzle is None else ", swizzled"
        yield (
            f"{tile.tensor}: {parts}{sides} elements in {boxes} of {box.rows} x {box.columns}"
            f"{each}, {tile.bytes} bytes{swizzled}{shared}."
        )
    stages = counted(tiles[0].stages, "stage")
    total = sum(tile.bytes for tile in tiles)
    who = "One thread of each block" if any(map(_is_shared, tiles)) else "One thread"
    yield f"{who} issues the requests; the barrier of each of {stages} expects {total} bytes."
