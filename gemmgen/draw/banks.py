"""Requests of a warp, bank by bank: without pad and swizzle, and as scheduled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gemmgen.analyze.maps import NOBODY, Picture, drawn
from gemmgen.analyze.unpadded import BankMaps, bank_maps
from gemmgen.base.errors import UsageError
from gemmgen.draw.marks import CONFLICT, PLAIN, Cell, Drawing, Label, Mark, thread
from gemmgen.draw.scene import Scene

WIDTH, HEIGHT = 24.0, 16.0
"""Pixels of a bank in a wavefront."""
_LEFT, _TOP, _BETWEEN = 88.0, 56.0, 32.0


def draw(scene: Scene) -> Drawing:
    """A row of the drawing for each direction of each shared tile: before to the left, now to the
    right.

    Raises ``UsageError`` for a kernel that stages nothing in shared memory.
    """
    found = bank_maps(scene.kernel)
    if not found:
        raise UsageError(
            "--what banks: this kernel has no tile in shared memory; "
            "cache_shared stages tiles there"
        )
    marks: list[Mark] = []
    x = y = 0.0
    for maps in found:
        for at, now in enumerate(maps.now):
            pair = [(_BEFORE, maps.before[at]), (_now(maps), now)] if _differs(maps) else []
            width, height = 0.0, 0.0
            for heading, picture in pair or [(_now(maps), now)]:
                marks += _map(heading, picture, width, y)
                width += _LEFT + WIDTH * len(picture.columns) + _BETWEEN
                height = max(height, HEIGHT * len(picture.rows))
            x, y = max(x, width), y + _TOP + height + _BETWEEN
    title = f"{scene.kernel.emitted.name}: the banks of a warp's costliest requests"
    description = " ".join(sentence for maps in found for sentence in _sentences(maps))
    text = "\n".join(part for maps in found for part in _texts(maps))
    return Drawing(title, f"{description} {_LEGEND}", x, y, tuple(marks), text)


_BEFORE = "without pad and swizzle"
_LEGEND = "Columns are banks, rows are wavefronts, numbers are threads of the warp."


def _differs(maps: BankMaps) -> bool:
    return bool(maps.statements and maps.before)


def _now(maps: BankMaps) -> str:
    return "; ".join(maps.statements) or "as scheduled, without pad or swizzle"


def _map(heading: str, picture: Picture, x: float, y: float) -> Iterator[Mark]:
    left, top = x + _LEFT, y + _TOP
    yield Label(left, y + 8, f"{heading}: {_conflict(picture)}", size="large")
    yield Label(left, y + 26, picture.title, quiet=True)
    for at, column in enumerate(picture.columns):
        where = left + (at + 0.5) * WIDTH
        yield Label(where, top - 8, column, "middle", "small", quiet=True)
    for row_at, row in enumerate(picture.rows):
        at_y = top + row_at * HEIGHT
        yield Label(left - 8, at_y + HEIGHT / 2, row.label.strip(), "end", "small")
        yield Cell(left, at_y, WIDTH * len(row.lanes), HEIGHT, PLAIN)
        for at, lane in enumerate(row.lanes):
            if lane != NOBODY:
                about = f"bank {picture.columns[at]}: thread {lane}"
                meaning = CONFLICT if row.again else thread(lane)
                yield Cell(left + at * WIDTH, at_y, WIDTH, HEIGHT, meaning, str(lane), about)


def _conflict(picture: Picture) -> str:
    return "no conflict" if picture.ways == 1 else f"{picture.ways}-way conflict"


def _sentences(maps: BankMaps) -> Iterator[str]:
    for at, now in enumerate(maps.now):
        if _differs(maps):
            before = _conflict(maps.before[at])
            yield f"{now.title}: {before} {_BEFORE}, {_conflict(now)} with {_now(maps)}."
        else:
            yield f"{now.title}: {_conflict(now)}."


def _texts(maps: BankMaps) -> Iterator[str]:
    for heading, found in _columns(maps):
        for picture in found:
            yield f"{heading}:\n{drawn(picture)}"


def _columns(maps: BankMaps) -> Iterator[tuple[str, Sequence[Picture]]]:
    if _differs(maps):
        yield _BEFORE, maps.before
    yield _now(maps), maps.now
