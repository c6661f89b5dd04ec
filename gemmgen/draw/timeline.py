"""A block's steps in time: the loads that overlap its multiplications, and its waits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil

from gemmgen.analyze.block_step import PINGPONG, BlockStep
from gemmgen.analyze.block_steps import block_steps
from gemmgen.analyze.schematic_time import TILE, StepTime, times_of
from gemmgen.analyze.whole_tiles import k_step, stages_of
from gemmgen.base.source import counted
from gemmgen.draw.marks import COLUMN, PLAIN, Cell, Drawing, Label, Mark, Stroke
from gemmgen.draw.scene import Scene
from gemmgen.draw.timeline_lanes import (
    Interval,
    Lane,
    inner_lanes,
    lanes_of,
    reads_ahead,
    steps,
    window,
)
from gemmgen.draw.timeline_stages import (
    PRODUCER,
    Passing,
    computing,
    has_stages,
    lanes_of_stages,
    passings,
)

TILES = 4
"""Tiles along k whose arithmetic is drawn."""
OF_A_SUM = 3
"""Tiles along k of each tile of C, where two of these are drawn."""
LEFT, TOP, ROW, BETWEEN, RIGHT = 168.0, 32.0, 32.0, 16.0, 16.0
_PER_TILE, _PER_STEP = 96.0, 100.0
"""Pixels of the arithmetic of a tile, and of a step within it."""
_LONGEST = COLUMN - LEFT - RIGHT
"""Pixels of time in one row of lanes; what comes later is drawn below."""
CHARACTER = 8.0
"""Pixels that a character in a bar needs."""


def draw(scene: Scene) -> Drawing:
    """The prologue and the first steps along k of block 0; below them the steps within a tile, if
    fragments are read ahead."""
    times = times_of(_steps(scene))
    end = _end_of(scene, times)
    of = lanes_of_stages if has_stages(times) else lanes_of
    outer = [lane for lane in of(times) if any(bar.start < end for bar in lane.bars)]
    arrows = [p for p in passings(times, outer) if p.time < end] if has_stages(times) else []
    marks: list[Mark] = [Label(8, 8, _SCHEMATIC, quiet=True)]
    scale, y = _PER_TILE / TILE, TOP
    for first, last in _folded(0.0, end, scale):
        y += BETWEEN if first else 0.0
        marks += _rows(outer, first, last, scale, y)
        marks += _arrows([p for p in arrows if first <= p.time < last], first, y)
        y += ROW * len(outer)
    if reads_ahead(times):
        begin, stop = window(times)
        inner = [x for x in inner_lanes(computing(times)) if _is_between(x, begin, stop)]
        scale = min(_PER_STEP * steps(times) / TILE, _LONGEST / (stop - begin))
        y += 2 * BETWEEN
        marks.append(Label(8, y, _INNER, quiet=True))
        y += BETWEEN
        marks += _rows(inner, begin, stop, scale, y)
        y += ROW * len(inner)
    title = f"{scene.kernel.emitted.name}: the steps of a block in time"
    width = max(m.x + m.width for m in marks if isinstance(m, Cell)) + RIGHT
    return Drawing(title, _description(scene, times), max(width, 640), y + 16, tuple(marks))


_SCHEMATIC = "order and overlap are the program's, durations are schematic; time goes to the right"
_INNER = "from one tile to the next, larger: fragments of the next step are read during this one"


def walks_on(scene: Scene) -> bool:
    """Whether the block has a producer, which copies on while the accumulators of a tile are
    written."""
    return scene.main.work.persistent and scene.main.producers.threads > 0


def _steps(scene: Scene) -> tuple[BlockStep, ...]:
    """The steps that are drawn, and enough following ones; if a persistent block continues, those
    of one or two tiles of C more than the two that are drawn."""
    if walks_on(scene):
        return block_steps(scene.kernel, OF_A_SUM, outputs=2 + scene.main.producers.pingpong)
    return block_steps(scene.kernel, TILES + stages_of(scene.kernel) + 1)


def _of_a_sum(times: Sequence[StepTime]) -> int:
    """Steps along k of each tile of C."""
    turns = 2 if any(s.step.role in PINGPONG for s in times) else 1
    return (max(s.step.tile for s in times) + 1) // (2 + turns)


def _end_of(scene: Scene, times: Sequence[StepTime]) -> float:
    """When the arithmetic of the tiles that are drawn ends; of ping-pong consumers, when the second
    one has written its first tile of C."""
    tiles = 2 * _of_a_sum(times) if walks_on(scene) else TILES
    end = max(s.end for s in times if s.step.what == "multiply" and s.step.tile < tiles)
    if scene.main.producers.pingpong == 1:
        return end
    later = next(
        (
            s.start
            for s in times
            if s.step.role == PINGPONG[1] and s.step.tile >= 3 * _of_a_sum(times)
        ),
        None,
    )
    writes = [
        s.end
        for s in times
        if (s.step.role, s.step.what) == (PINGPONG[1], "write")
        and (later is None or s.start < later)
    ]
    return max(end, *writes)


def _folded(begin: float, end: float, scale: float) -> Iterator[tuple[float, float]]:
    """The time from ``begin`` to ``end`` in equal parts, each of which fits the column."""
    count = max(1, ceil((end - begin) * scale / _LONGEST - 1e-9))
    each = (end - begin) / count
    for at in range(count):
        yield begin + at * each, end if at + 1 == count else begin + (at + 1) * each


def _rows(
    lanes: Sequence[Lane], begin: float, end: float, scale: float, y: float
) -> Iterator[Mark]:
    """The part of ``lanes`` between ``begin`` and ``end``, one below the other."""
    for at, lane in enumerate(lanes):
        top = y + at * ROW
        yield Label(LEFT - 12, top + ROW / 2, lane.name, "end")
        for bar in lane.bars:
            for start, stop, there in ((bar.start, bar.end, False), (bar.end, bar.needed, True)):
                first, last = max(start, begin), min(stop, end)
                if last - first > 1e-9:
                    x, width = LEFT + (first - begin) * scale, (last - first) * scale
                    yield _cell(lane, bar, (x, top + 2, width, ROW - 4), there=there)


def _cell(
    lane: Lane, bar: Interval, box: tuple[float, float, float, float], *, there: bool
) -> Cell:
    """A bar, or the time after it in which what it brought is ``there`` and not used yet."""
    if there:
        return Cell(*box, PLAIN, "", f"{bar.about}: may take until here", dashed=True)
    text = next((t for t in bar.texts if box[2] >= CHARACTER * len(t)), "")
    meaning = PLAIN if bar.empty else bar.meaning or lane.meaning
    return Cell(*box, meaning, text, bar.about, dashed=bar.empty)


def _is_between(lane: Lane, begin: float, end: float) -> bool:
    return any(bar.start < end and begin < bar.end for bar in lane.bars)


def _arrows(found: Sequence[Passing], first: float, y: float) -> Iterator[Mark]:
    """From the stage that is full, or empty again, to those who have waited for it."""
    for one in found:
        x, down = LEFT + (one.time - first) * _PER_TILE / TILE, one.end > one.begin
        begin = y + one.begin * ROW + (ROW - 2 if down else 2)
        end = y + one.end * ROW + (2 if down else ROW - 2)
        yield Stroke(((x, begin), (x, end)), one.meaning, arrow=True, strong=False)


def overlaps(times: Sequence[StepTime]) -> tuple[tuple[int, int], ...]:
    """Pairs of tiles: the first is on its way from global memory while the second is multiplied."""
    moves = [s for s in times if s.step.what in ("load", "copy") and not s.step.empty]
    products = [s for s in times if s.step.what == "multiply"]
    found = {
        (move.step.tile, product.step.tile): None
        for move in moves
        for product in products
        if move.start < product.end and product.start < move.end
    }
    return tuple(sorted(found))


def _description(scene: Scene, times: Sequence[StepTime]) -> str:
    stages, step = stages_of(scene.kernel), k_step(scene.kernel)
    ahead = max((early - late for early, late in overlaps(times)), default=0)
    what = "asynchronous copies" if any(s.step.what == "copy" for s in times) else "loads"
    if ahead > 0:
        tiles = counted(ahead, "tile")
        said = f"while one tile is multiplied, {what} of up to {tiles} ahead are under way"
    else:
        said = f"no {what} go on while a tile is multiplied: the block waits for each"
    begin = f"Steps of {step} along k with {counted(stages, 'stage')}: {said}. "
    if walks_on(scene):
        each = counted(_of_a_sum(times), "step")
        begin += f"Each tile of C takes {each}; the next one's copies go on during its epilogue. "
    producer = any(time.step.role == PRODUCER for time in times)
    waiting = "The producer waits for empty stages, consumers for full ones. " if producer else ""
    return f"{begin}{waiting}Durations are schematic."
