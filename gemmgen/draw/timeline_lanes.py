"""The rows of a timeline: copies between memories, barriers, arithmetic and waits as intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from gemmgen.analyze.block_step import BlockStep
from gemmgen.analyze.schematic_time import StepTime
from gemmgen.base.record import record
from gemmgen.draw.marks import COMPUTE, LOAD, STORE, WAIT, Meaning

NARROW = 0.012
"""A gap that is not a wait but the time to issue reads, in tiles."""


@record
class Interval:
    """An interval of a lane, of one or several steps; ``texts`` say it at length, then shorter.

    What is there at ``end`` is needed at ``needed``.  ``meaning`` is another than the lane's.
    """

    start: float
    end: float
    texts: tuple[str, ...]
    about: str
    empty: bool = False
    needed: float = 0.0
    meaning: Meaning | None = None


@record
class Lane:
    """A row of bars that do not overlap."""

    name: str
    meaning: Meaning
    bars: tuple[Interval, ...]


def lanes_of(times: Sequence[StepTime]) -> list[Lane]:
    """The copies between memories, barriers and arithmetic, tile by tile."""
    moves = _tiles(times, lambda s: s.what in ("load", "copy") and s.k is None)
    whole = _apart([_bar(m, _arrival(m[0].step)) for m in moves])
    stores = [_bar(m, "store") for m in _tiles(times, lambda s: s.what == "store")]
    asynchronous = any(s.step.what == "copy" for s in times)
    to = "global to shared" if asynchronous else "global to registers"
    return [
        *(Lane(to if at == 0 else "", LOAD, bars) for at, bars in enumerate(whole)),
        Lane("registers to shared", STORE, tuple(stores)),
        Lane("barrier", WAIT, barriers(times)),
        Lane("multiply-adds", COMPUTE, tuple(arithmetic(times))),
        Lane("waits", WAIT, tuple(waits(times))),
    ]


def _arrival(step: BlockStep) -> str:
    return "copy" if step.what == "copy" else "load"


def _tiles(times: Sequence[StepTime], wanted: Callable[[BlockStep], bool]) -> list[list[StepTime]]:
    """The times of one kind, by runs of the same tile."""
    found: list[list[StepTime]] = []
    for time in times:
        if wanted(time.step):
            last = found[-1][-1] if found else None
            if last and last.step.tile == time.step.tile and time.start <= last.end + NARROW:
                found[-1].append(time)
            else:
                found.append([time])
    return found


def _bar(times: Sequence[StepTime], verb: str) -> Interval:
    step = times[0].step
    operands = " and ".join(dict.fromkeys(s.step.operand for s in times))
    to = f" to stage {step.stage}" if step.stage is not None else ""
    what = "none: K ends before it" if step.empty else f"tile {step.tile} of {operands}"
    names = " ".join(dict.fromkeys(s.step.operand for s in times))
    texts = (f"{names} tile {step.tile}", f"{names} {step.tile}", str(step.tile))
    needed = max(s.needed for s in times)
    return Interval(times[0].start, times[-1].end, texts, f"{verb} {what}{to}", step.empty, needed)


def _apart(bars: Sequence[Interval]) -> list[tuple[Interval, ...]]:
    """The bars on as few rows as possible without overlap."""
    rows: list[list[Interval]] = []
    for bar in bars:
        row = next((r for r in rows if max(r[-1].end, r[-1].needed) <= bar.start + 1e-9), None)
        if row is None:
            rows.append([bar])
        else:
            row.append(bar)
    return [tuple(row) for row in rows]


def arithmetic(times: Sequence[StepTime]) -> Iterator[Interval]:
    """The arithmetic of each tile, as far as it is not interrupted."""
    begun: list[StepTime] = []
    for time in (s for s in times if s.step.what == "multiply"):
        if begun:
            same = begun[-1].step.tile == time.step.tile
            if not same or time.start - begun[-1].end > _gap(times):
                yield _product(begun)
                begun = []
        begun.append(time)
    yield _product(begun)


def _gap(times: Sequence[StepTime]) -> float:
    """The longest pause between two steps of a tile that is not drawn."""
    each = steps(times)
    return NARROW + (0.8 / each if each > 1 else 0.0)


def _product(times: Sequence[StepTime]) -> Interval:
    first = times[0].step
    about = f"multiply tile {first.tile}"
    if first.k is not None and len(times) > 1:
        about += f", steps k = {first.k} to {times[-1].step.k}"
    return Interval(times[0].start, times[-1].end, (f"tile {first.tile}", str(first.tile)), about)


def waits(times: Sequence[StepTime]) -> Iterator[Interval]:
    """The waits of the block, or of the role with these times, for a load to arrive or for the
    phase of a barrier to end."""
    now = times[0].start
    for time in times:
        if time.step.what == "await" and time.end - time.start > NARROW:
            yield Interval(time.start, time.end, _barrier_texts(time.step), awaits(time.step))
        if time.start - now > _gap(times):
            yield Interval(now, time.start, (), f"the block waits before it can {time.step.what}")
        now = max(now, time.start + time.busy)


def _barrier_texts(step: BlockStep) -> tuple[str, ...]:
    return (f"{step.barrier}[{step.stage}]", str(step.stage))


def awaits(step: BlockStep) -> str:
    """Who waits, for which barrier and phase."""
    who = step.role or "the block"
    verb = "wait" if who.endswith("s") else "waits"
    return f"{who} {verb} for {step.barrier}[{step.stage}], phase {step.phase}"


def steps(times: Sequence[StepTime]) -> int:
    """Steps of a tile: of the first one that these warps multiply."""
    tiles = [s.step.tile for s in times if s.step.what == "multiply"]
    return max(1, tiles.count(min(tiles, default=0)))


def reads_ahead(times: Sequence[StepTime]) -> bool:
    """Whether fragments are read into two slots."""
    return any(s.step.what == "read" and s.step.stage == 1 for s in times)


def window(times: Sequence[StepTime]) -> tuple[float, float]:
    """From two steps before the end of tile 1 to three steps into tile 2."""
    own = [s for s in times if s.step.what == "multiply"]
    each = steps(times)
    at = min(2 * each, len(own) - 1)
    return own[max(0, at - 2)].start, own[min(len(own) - 1, at + 2)].end


def inner_lanes(times: Sequence[StepTime]) -> list[Lane]:
    """Reads into each slot of fragments, arrivals, stores, barriers and accumulators, step by
    step."""
    found: list[Lane] = []
    for slot in (0, 1):
        reads = [s for s in times if s.step.what == "read" and s.step.stage == slot]
        pairs: dict[tuple[int, int | None], list[StepTime]] = {}
        for time in reads:
            pairs.setdefault((time.step.tile, time.step.k), []).append(time)
        bars = tuple(
            Interval(
                own[0].start,
                own[-1].end,
                (f"k {k}",),
                f"read step {k} of tile {tile}",
                own[0].step.empty,
            )
            for (tile, k), own in pairs.items()
        )
        found.append(Lane(f"shared to slot {slot}", LOAD, bars))
    stores = tuple(_bar(m, "store") for m in _tiles(times, lambda s: s.what == "store"))
    products = tuple(
        Interval(
            s.start,
            s.end,
            (f"tile {s.step.tile}, k {s.step.k}", f"{s.step.tile}: k {s.step.k}"),
            f"multiply step {s.step.k}",
        )
        for s in times
        if s.step.what == "multiply"
    )
    issues = tuple(
        Interval(
            s.start,
            s.start + s.busy,
            (str(s.step.tile),),
            f"begin to {s.step.what} tile {s.step.tile}",
        )
        for s in times
        if s.step.what in ("load", "copy") and s.step.k is None
    )
    releases = tuple(
        Interval(s.start, s.end, (), f"arrive at {s.step.barrier}[{s.step.stage}]: it is read")
        for s in times
        if s.step.what == "release"
    )
    rest = (
        Lane("arrive at empty", STORE, releases),
        Lane("begins loads" if stores else "begins copies", LOAD, issues),
        Lane("registers to shared", STORE, stores),
        Lane("barrier", WAIT, barriers(times)),
    )
    return [*found, *(lane for lane in rest if lane.bars), Lane("multiply-adds", COMPUTE, products)]


def barriers(times: Sequence[StepTime]) -> tuple[Interval, ...]:
    return tuple(
        Interval(s.start, s.end, (), "all threads of the block meet")
        for s in times
        if s.step.what == "barrier"
    )
