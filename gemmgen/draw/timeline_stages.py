"""The rows of a timeline whose tiles TMA copies: the contents of each stage, and the waits at its
barriers.

A stage is filled, is full until a thread has waited for that, is read, and is empty again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gemmgen.analyze.block_step import PINGPONG, BlockStep
from gemmgen.analyze.schematic_time import StepTime
from gemmgen.base.record import record
from gemmgen.draw.marks import COMPUTE, LOAD, PLAIN, STORE, WAIT, Meaning
from gemmgen.draw.timeline_lanes import Interval, Lane, arithmetic, awaits, barriers, waits

PRODUCER = "producer"
TURN = "turn"
"""The order barriers of ping-pong consumers."""


@record
class Passing:
    """At ``time`` a thread has waited for the phase of a barrier: what ended it was in the lane
    ``begin``, who waited is in the lane ``end``."""

    time: float
    begin: int
    end: int
    step: BlockStep

    @property
    def meaning(self) -> Meaning:
        """The colors of stages that are filled, and of those that are given back."""
        return STORE if self.step.role == PRODUCER else LOAD


def has_stages(times: Sequence[StepTime]) -> bool:
    """Whether TMA copies tiles into stages that have barriers."""
    return any(time.step.what == "await" for time in times)


def computing(times: Sequence[StepTime]) -> list[StepTime]:
    """The times of the warps that multiply; of ping-pong consumers the first one"""
    return _by_role(times)[0]


def _by_role(times: Sequence[StepTime]) -> list[list[StepTime]]:
    """The times of the warps that multiply, separately for ping-pong consumers."""
    own = [time for time in times if time.step.role != PRODUCER]
    roles = {time.step.role for time in own}
    apart = [[time for time in own if time.step.role == name] for name in PINGPONG if name in roles]
    return apart or [own]


def lanes_of_stages(times: Sequence[StepTime]) -> list[Lane]:
    """The lanes of the producer, if there is one, of each stage, and of the consumers."""
    producer = [time for time in times if time.step.role == PRODUCER]
    own = computing(times)
    stages = sorted(
        {t.step.stage for t in times if _has_stage(t.step) and t.step.stage is not None}
    )
    held = [Lane(f"stage {s}", LOAD, tuple(_stage(times, s))) for s in stages]
    if producer:
        return [
            Lane("producer: TMA requests", LOAD, tuple(_asks(producer))),
            Lane("producer waits", WAIT, tuple(waits(producer))),
            *held,
            *(lane for each in _by_role(times) for lane in _of_consumers(each)),
        ]
    return [
        *held,
        Lane("waits", WAIT, tuple(waits(own))),
        Lane("barrier", WAIT, barriers(own)),
        Lane("multiply-adds", COMPUTE, tuple(arithmetic(own))),
    ]


def _has_stage(step: BlockStep) -> bool:
    """Whether its barrier is that of a stage, and not of a turn."""
    return step.barrier not in ("", TURN)


def _of_consumers(times: Sequence[StepTime]) -> Iterator[Lane]:
    """The bars of the warps that multiply a tile."""
    wait, multiply, write = _names(times[0].step.role)
    yield Lane(wait, WAIT, tuple(waits(times)))
    yield Lane(multiply, COMPUTE, tuple(arithmetic(times)))
    yield Lane(write, STORE, tuple(_writes(times)))


def _names(role: str) -> tuple[str, str, str]:
    """The lanes of all consumers, or of one ping-pong consumer."""
    if role in PINGPONG:
        return f"{role} waits", f"{role} computes", f"{role} writes C"
    return "consumers wait", "consumers compute", "consumers write C"


def passings(times: Sequence[StepTime], lanes: Sequence[Lane]) -> Iterator[Passing]:
    """Each wait for a phase that something had to end."""
    at = {lane.name: number for number, lane in enumerate(lanes)}
    who = {PRODUCER: "producer waits", "consumers": "consumers wait"}
    who |= {name: _names(name)[0] for name in PINGPONG}
    for time in times:
        step = time.step
        if step.what == "await" and step.phase >= 0:
            begin = f"stage {step.stage}"
            if step.barrier == TURN:
                other = PINGPONG[1 - PINGPONG.index(step.role)]
                begin = _names(other)[1]
            yield Passing(time.end, at[begin], at[who.get(step.role, "waits")], step)


def _asks(times: Sequence[StepTime]) -> Iterator[Interval]:
    """The points at which the producer issues the copies of a tile."""
    for own in _by_tile(times, "copy"):
        step = own[0].step
        about = f"TMA request for tile {step.tile}, to stage {step.stage}"
        end = own[-1].start + own[-1].busy
        yield Interval(own[0].start, end, (str(step.tile),), about)


def _writes(times: Sequence[StepTime]) -> Iterator[Interval]:
    """The epilogue of each tile of C, which may write it in slices."""
    slices: list[StepTime] = []
    for time in (*times, None):
        if time is not None and time.step.what == "write":
            slices.append(time)
        elif slices and (time is None or time.step.what == "multiply"):
            count = len(slices)
            about = "epilogue: a tile of C is written" + (
                f" in {count} slices" if count > 1 else ""
            )
            yield Interval(slices[0].start, slices[-1].end, ("epilogue", "C"), about)
            slices = []


def _stage(times: Sequence[StepTime], stage: int) -> Iterator[Interval]:
    """What is done with a stage: tiles are copied to it and read."""
    reads = {own[0].step.tile: own for own in _by_tile(times, "read")}
    awaited = {(t.step.barrier, t.step.stage, t.step.phase): t for t in times if _is_await(t)}
    for own in _by_tile(times, "copy"):
        step = own[0].step
        if step.stage != stage:
            continue
        names = " ".join(s.step.operand for s in own)
        about = f"copy tile {step.tile} of {' and '.join(names.split())} to stage {stage}"
        texts = (f"{names} tile {step.tile}", f"{names} {step.tile}", str(step.tile))
        landed, wait = max(s.end for s in own), awaited.get((step.barrier, stage, step.phase))
        if wait is None:
            yield Interval(own[0].start, landed, texts, about)
            continue
        yield Interval(own[0].start, landed, texts, about, needed=wait.end)
        read = reads.get(step.tile)
        if read:
            text = f"tile {step.tile} is read in stage {stage}: {awaits(wait.step)} before"
            end = max(s.start + s.busy for s in read)
            yield Interval(wait.end, end, ("is read", "read"), text, meaning=PLAIN)


def _is_await(time: StepTime) -> bool:
    return time.step.what == "await" and time.step.role != PRODUCER


def _by_tile(times: Sequence[StepTime], what: str) -> list[list[StepTime]]:
    """The times of one kind, by tile."""
    found: dict[int, list[StepTime]] = {}
    for time in times:
        if time.step.what == what:
            found.setdefault(time.step.tile, []).append(time)
    return list(found.values())
