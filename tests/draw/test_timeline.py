"""The order in which steps are drawn is that in which the interpreter takes them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import pytest
from chosen import with_every_word

from gemmgen.analyze.analyzed_kernel import AnalyzedKernel
from gemmgen.analyze.block_step import PINGPONG, BlockStep
from gemmgen.analyze.block_steps import block_steps, shape_of_steps
from gemmgen.analyze.schematic_time import times_of
from gemmgen.calling.launches import Order
from gemmgen.draw.marks import Label, Stroke
from gemmgen.draw.terminal import text_of
from gemmgen.draw.timeline import overlaps
from gemmgen.draw.timeline_lanes import lanes_of
from gemmgen.draw.timeline_stages import lanes_of_stages, passings
from gemmgen.ir.atoms import ATOMS
from gemmgen.ir.edit import contraction
from gemmgen.schedule.examples import path_of
from tests.cli.running import gemmgen
from tests.draw.block_zero import Event, compiled, of_text, run_roles
from tests.draw.reading import ALL, drawn

ROLES = ("producer", "consumers")


def walked(kernel: AnalyzedKernel, tiles: int, role: str = "", outputs: int = 1) -> list[Event]:
    """The steps of a role as the accesses that they are.  A sum that is not an array is not logged,
    nor what is read in place: all is, then, that is not access of a thread's."""
    found: list[Event] = []
    for step in block_steps(kernel, tiles, outputs):
        found += accesses(step) if step.role in ("", role) else []
    spread = kernel.program.main.spread
    if spread.registers == 1 and spread.holding == "thread":
        found = [event for event in found if event[0] not in ("multiply", "write")]
    if ATOMS[contraction(kernel.program.main).atom].in_place:
        accessed = ("load", "multiply", "write", "reduce")
        found = [event for event in found if event[0] not in accessed]
    return tidy(found)


def accesses(step: BlockStep) -> list[Event]:
    loaded = [] if step.empty else [("load", step.operand)]
    phase = f"{step.barrier}[{step.stage}] {step.phase}"
    if step.barrier:
        if step.what == "copy":
            return [("box", f"{step.operand}_shared {phase}")]
        return [(step.what, phase)]
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


def taken(
    kernel: AnalyzedKernel, tiles: int, order: Order = "ascending", outputs: int = 1
) -> dict[str, list[Event]]:
    """What the interpreter's memories and barriers saw of the operands, and of stores to the slice
    of C, by role.  Of tiles that are multiplied in place a sum is written by a promotion, which is
    no multiplication; of tiles of parts threads load only what accumulators that are not finite are
    computed again from."""
    problem = kernel.program.problem
    names = [name for t in (problem.a, problem.b) for name in (t.name, f"{t.name}_shared")]
    staged = ("store", f"{problem.c.name}_shared")
    m, *others = shape_of_steps(kernel, tiles)
    logs = run_roles(kernel, (outputs * m, *others), order)
    promotions = (
        {"multiply"} if ATOMS[contraction(kernel.program.main).atom].in_place else set[str]()
    )
    again = {"load"} if kernel.lowered.interface.split else set[str]()
    return {
        role: tidy(
            e
            for e in log.events
            if e[0] not in ("load", "store") or e[1] in names or e == staged
            if e[0] not in promotions | again
        )
        for role, log in logs.items()
    }


QUICK = ("naive", "vectorized", "async_copy", "hopper/tma", "tensor_core")


@pytest.mark.by_default(*QUICK)
@pytest.mark.parametrize("name", dict.fromkeys((*QUICK, *with_every_word(ALL))))
def test_steps_are_in_the_order_of_the_interpreter(name: str) -> None:
    kernel = compiled(name)
    for role, events in taken(kernel, 2).items():
        assert walked(kernel, 2, role) == events, role


@pytest.mark.proof
@pytest.mark.parametrize("order", ["ascending", "descending", "shuffled"])
def test_each_role_goes_round_its_ring_as_in_the_interpreter(order: Order) -> None:
    """Three rounds of the stages, whichever goes first if both can."""
    kernel = compiled("hopper/warp_specialized")
    found = taken(kernel, 9, order)
    assert tuple(found) == ROLES
    for role, events in found.items():
        assert walked(kernel, 9, role) == events, role
    assert ("await", "empty[0] 1") in found["producer"]
    assert ("await", "full[0] 2") in found["consumers"]


@pytest.mark.proof
@pytest.mark.parametrize("order", ["ascending", "descending"])
def test_a_persistent_block_goes_on_as_in_the_interpreter(order: Order) -> None:
    """Three tiles of C of three steps each, in a ring of four stages."""
    kernel = compiled("hopper/persistent")
    for role, events in taken(kernel, 3, order, outputs=3).items():
        steps = walked(kernel, 3, role, outputs=3)  # stores of C are not logged
        assert [event for event in steps if event[0] != "write"] == events, role


@pytest.mark.proof
@pytest.mark.parametrize("order", ["ascending", "descending"])
def test_ping_pong_consumers_run_as_in_the_interpreter(order: Order) -> None:
    """Three tiles of C: of two consumers the first has two of them, and they pass on the turn."""
    kernel = compiled("hopper/pingpong")
    found = taken(kernel, 3, order, outputs=3)
    assert tuple(found) == ("producer", *PINGPONG)
    for role, events in found.items():
        steps = walked(kernel, 3, role, outputs=3)  # what leaves the slices is not logged
        assert tidy(event for event in steps if event[0] != "write") == events, role
    assert ("await", "turn[0] 0") in found[PINGPONG[0]]
    assert ("release", "turn[0] 0") not in found[PINGPONG[0]]


def test_one_consumer_multiplies_while_the_other_writes() -> None:
    times = times_of(block_steps(compiled("hopper/pingpong"), 3, outputs=3))
    lanes = {lane.name: lane.bars for lane in lanes_of_stages(times)}
    one, other = lanes["consumer 1 writes C"], lanes["consumer 2 computes"]
    assert any(w.start < m.end and m.start < w.end for w in one for m in other)
    own = lanes["consumer 1 computes"]
    assert not any(a.start < b.end and b.start < a.end for a in own for b in other)


@pytest.mark.proof
def test_copies_go_on_while_the_accumulators_of_a_tile_are_stored() -> None:
    times = times_of(block_steps(compiled("hopper/persistent"), 3, outputs=3))
    lanes = {lane.name: lane.bars for lane in lanes_of_stages(times)}
    first, *_ = lanes["consumers write C"]
    held = [bar for name in lanes for bar in lanes[name] if name.startswith("stage")]
    copied = [bar for bar in held if bar.about.startswith("copy tile")]
    assert sum(bar.start < first.end and first.start < bar.needed for bar in copied) == 3
    assert (
        "Each tile of C takes 3 steps; the next one's copies go on during its epilogue"
        in drawn("hopper/persistent", "timeline").description
    )


@pytest.mark.proof
def test_a_ring_with_another_number_of_stages_is_found(tmp_path: Path) -> None:
    kernel = compiled("hopper/warp_specialized")
    text = path_of("hopper/warp_specialized").read_text().replace("stages=3", "stages=4")
    other = of_text(text, tmp_path)
    for role, events in taken(kernel, 5).items():
        assert walked(other, 5, role) != events


def test_a_barrier_at_another_place_is_found() -> None:
    kernel, other = compiled("padded"), compiled("double_buffered")
    planted = replace(kernel, program=other.program)
    assert walked(planted, 2) != taken(kernel, 2)[""]


@pytest.mark.parametrize(
    "name, ahead",
    [
        ("padded", 0),
        ("double_buffered", 1),
        ("vectorized", 1),
        ("async_copy", 3),
        ("hopper/tma", 3),
        ("hopper/warp_specialized", 3),
    ],
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


@pytest.mark.parametrize("name", ["hopper/tma", "hopper/warp_specialized"])
def test_a_stage_holds_one_tile_at_a_time(name: str) -> None:
    """It is filled, full, read; who waits for it has waited when it is what they wait for."""
    times = times_of(block_steps(compiled(name), 9))
    lanes = lanes_of_stages(times)
    for lane in lanes:
        ends = [0.0, *(max(bar.end, bar.needed) for bar in lane.bars)]
        assert all(bar.start >= end - 1e-9 for bar, end in zip(lane.bars, ends, strict=False))
    for one in passings(times, lanes):
        bars = lanes[one.begin].bars
        assert lanes[one.begin].name == f"stage {one.step.stage}"
        if one.step.barrier == "full":
            (copied,) = (bar for bar in bars if abs(bar.needed - one.time) < 1e-9)
            assert copied.end <= one.time and copied.about.startswith("copy tile")
        else:
            before = [bar for bar in bars if bar.end <= one.time]
            assert before[-1].texts[0] == "is read" and lanes[one.end].name == "producer waits"
            assert not any(bar.start < one.time < max(bar.end, bar.needed) for bar in bars)


def test_both_sides_of_a_ring_are_drawn() -> None:
    """An arrow for each wait that something ended, within what is drawn; text has them too."""
    drawing = drawn("hopper/warp_specialized", "timeline")
    labels = [mark.text for mark in drawing.marks if isinstance(mark, Label)]
    for name in (
        "producer: TMA requests",
        "producer waits",
        "stage 0",
        "consumers wait",
        "consumers compute",
    ):
        assert name in labels
    arrows = [mark for mark in drawing.marks if isinstance(mark, Stroke)]
    up = [one for one in arrows if one.points[0][1] > one.points[-1][1]]
    assert all(one.arrow for one in arrows) and (len(arrows), len(up)) == (9, 4)
    text = text_of(drawing)
    assert "full[0]" in text and "empty[0]" in text and text.count("^") == len(up)
    assert "consumers wait for full[1], phase 0" in " ".join(c.about for c in drawing.cells)
    assert "producer waits for empty stages" in drawing.description


def test_two_schedules_are_drawn_under_one_another() -> None:
    message = gemmgen("draw", "padded", "double_buffered", "--what", "timeline").stdout
    assert "no loads go on while a tile is multiplied" in message
    assert "loads of up to 1 tile ahead are under way" in message
