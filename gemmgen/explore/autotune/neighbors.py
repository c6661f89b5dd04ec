"""Neighbors of a schedule in its default space: one or two of its values are the next ones.

The number of stages follows the tile: a larger one leaves room for fewer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from math import lcm, prod

from gemmgen.base.record import record
from gemmgen.explore.autotune.default_spaces import SearchKnob, space_of
from gemmgen.explore.autotune.edits import Place, Value, changed, value_at, without
from gemmgen.explore.request import Request
from gemmgen.schedule.formatting import format_schedule
from gemmgen.schedule.model import Assume, Schedule
from gemmgen.schedule.roles import extents

TRIES = 3
"""Numbers of stages that are tried for a tile of another size, the largest first."""
Alternatives = tuple[str, ...]
"""Texts of schedules; the first legal one is taken."""


@record
class _Step:
    """A knob, and another value for it."""

    knob: SearchKnob
    value: Value


def neighbors(schedule: Schedule, request: Request) -> Iterator[Alternatives]:
    """The neighbors of ``schedule``, which may be illegal: those with one change first."""
    base = without(schedule, "warp_specialize", "consumers")
    knobs = space_of(schedule).knobs_for(schedule)
    stages = next((knob for knob in knobs if knob.is_stages), None)
    steps = [step for knob in knobs for step in _steps(base, knob)]
    for step in steps:
        yield _moved(base, (step,), None if step.knob is stages else stages, request)
    for one, other in combinations(steps, 2):
        pair = one.knob, other.knob
        if pair[0] is not pair[1] and stages not in pair and any(x.is_size for x in pair):
            yield _moved(base, (one, other), stages, request)


def _steps(schedule: Schedule, knob: SearchKnob) -> Iterator[_Step]:
    """The next smaller and the next larger number, or all other words."""
    now = value_at(schedule, knob.places[0])
    if not isinstance(now, int):
        yield from (_Step(knob, value) for value in knob.values if value != now)
        return
    numbers = sorted(value for value in knob.values if isinstance(value, int))
    yield from (_Step(knob, value) for value in [x for x in numbers if x < now][-1:])
    yield from (_Step(knob, value) for value in [x for x in numbers if x > now][:1])


def _moved(
    base: Schedule, steps: tuple[_Step, ...], stages: SearchKnob | None, request: Request
) -> Alternatives:
    found = base
    for step in steps:
        for place in step.knob.places:
            found = changed(found, place, step.value)
    found = _assuming(found, request)
    if stages is None or not any(step.knob.is_size for step in steps):
        return (format_schedule(found),)
    texts = [
        format_schedule(changed(found, stages.places[0], count))
        for count in _stage_counts(base, found, stages)
    ]
    return tuple(texts) or (format_schedule(found),)


def _stage_counts(base: Schedule, found: Schedule, knob: SearchKnob) -> list[int]:
    """The numbers of stages that may fit where those of ``base`` did, the largest first."""
    now = value_at(base, knob.places[0])
    if not isinstance(now, int):
        return []
    most = now * _stage_elements(base) // _stage_elements(found) + 1
    numbers = sorted((x for x in knob.values if isinstance(x, int)), reverse=True)
    return [x for x in numbers if x <= most][:TRIES] or numbers[-1:]


def _stage_elements(schedule: Schedule) -> int:
    """Elements of a stage: those of a tile of A and one of B."""
    rows, columns, k = (_tile(schedule, letter) for letter in "mnk")
    return (rows + columns) * k


def _tile(schedule: Schedule, letter: str) -> int:
    value = value_at(schedule, Place("tile", (), letter))
    return value if isinstance(value, int) else 1


def _assuming(schedule: Schedule, request: Request) -> Schedule:
    """``schedule`` with what its assumptions say of extents adapted to its tile, if that divides
    all of them: accesses then have no guards."""
    if not any(assume.divisor for assume in schedule.assumes):
        return schedule
    names = dict(zip("mnk", list(extents(schedule.gemm).values())[:3], strict=True))
    sizes = dict(zip("mnk", request.shape[:3], strict=True))
    tile = {letter: _tile(schedule, letter) for letter in "mnk"}
    if prod(sizes[x] % tile[x] == 0 for x in "mnk") == 0:
        return schedule
    found = {assume.name: assume for assume in schedule.assumes if assume.divisor}
    for letter, name in names.items():
        divisor = found[name].divisor if name in found else 1
        wanted = lcm(tile[letter], divisor or 1)
        if wanted > 1:
            found[name] = Assume(name, wanted, None)
    others = tuple(x for x in schedule.assumes if not x.divisor)
    return replace(schedule, assumes=(*found.values(), *others))
