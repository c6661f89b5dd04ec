"""The order in which steps are drawn is that in which the interpreter takes them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import groupby

import pytest

from gemmgen.analyze.block_steps import BlockStep, block_steps, shape_of_steps
from gemmgen.analyze.explain import AnalyzedKernel
from gemmgen.analyze.schematic_time import times_of
from gemmgen.analyze.whole_tiles import boxed_tiles
from gemmgen.draw.timeline import overlaps
from gemmgen.draw.timeline_lanes import lanes_of
from tests.cli.running import gemmgen
from tests.draw.block_zero import compiled, run
from tests.draw.reading import ALL

Event = tuple[str, str]


def walked(kernel: AnalyzedKernel, tiles: int) -> list[Event]:
    """The steps as the accesses that they are.  A sum that is no array is not logged."""
    found: list[Event] = []
    for step in block_steps(kernel, tiles):
        found += accesses(step)
    spread = kernel.program.main.spread
    if spread.registers == 1 and spread.holding == "thread":
        found = [event for event in found if event[0] not in ("multiply", "write")]
    return tidy(found)


def accesses(step: BlockStep) -> list[Event]:
    loaded = [] if step.empty else [("load", step.operand)]
    match step.what:
        case "load":
            return loaded
        case "store":
            return [("store", f"{step.operand}_shared")]
        case "copy":
            return [*loaded, ("store", f"{step.operand}_shared")]
        case "read":
            return [("load", f"{step.operand}_shared")]
        case "wait":
            return [("wait", str(step.pending))]
        case _:
            return [(step.what, "")]


def tidy(events: Iterable[Event]) -> list[Event]:
    """Up to the last multiplication.  A tile is moved piece by piece: loads and stores of the same
    operand that alternate are one of each."""
    found = list(events)
    products = [at for at, (what, _) in enumerate(found) if what == "multiply"]
    last = products[-1] if products else len(found)
    runs = groupby(found[: last + 1], lambda event: event[1].removesuffix("_shared") or event)
    return [event for _, run in runs for event in dict.fromkeys(run)]


def taken(kernel: AnalyzedKernel, tiles: int) -> list[Event]:
    """What the interpreter's memories saw of the operands."""
    problem = kernel.program.problem
    names = [name for t in (problem.a, problem.b) for name in (t.name, f"{t.name}_shared")]
    events = run(kernel, shape_of_steps(kernel, tiles)).events
    return tidy(e for e in events if e[0] not in ("load", "store") or e[1] in names)


BY_THREADS = [name for name in ALL if not boxed_tiles(compiled(name))]
"""Whose copies the log of block 0 sees: not those of the copy engine."""


@pytest.mark.parametrize("name", BY_THREADS)
def test_steps_are_in_the_order_of_the_interpreter(name: str) -> None:
    kernel = compiled(name)
    assert walked(kernel, 2) == taken(kernel, 2)


def test_a_barrier_at_another_place_is_found() -> None:
    kernel, other = compiled("padded"), compiled("double_buffered")
    planted = replace(kernel, program=other.program)
    assert walked(planted, 2) != taken(kernel, 2)


@pytest.mark.parametrize(
    "name, ahead", [("padded", 0), ("double_buffered", 1), ("vectorized", 1), ("async_copy", 3)]
)
def test_tiles_are_loaded_ahead_of_those_that_are_multiplied(name: str, ahead: int) -> None:
    found = overlaps(times_of(block_steps(compiled(name), 8)))
    assert max((early - late for early, late in found), default=0) == ahead


@pytest.mark.parametrize("name", ["naive", "padded", "vectorized", "warp_tiled", "async_copy"])
def test_nothing_is_used_before_it_has_arrived(name: str) -> None:
    times = times_of(block_steps(compiled(name), 4))
    assert all(s.start <= s.end <= s.needed or s.step.what == "multiply" for s in times)
    for lane in lanes_of(times):
        ends = [0.0, *(bar.end for bar in lane.bars)]
        assert all(bar.start >= end - 1e-9 for bar, end in zip(lane.bars, ends, strict=False))


def test_two_schedules_are_drawn_under_one_another() -> None:
    message = gemmgen("draw", "padded", "double_buffered", "--what", "timeline").stdout
    assert "no loads go on while a tile is multiplied" in message
    assert "loads of up to 1 tile ahead are under way" in message
