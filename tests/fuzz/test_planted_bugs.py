"""Bugs planted in passes, expansion and lowering: found within a few schedules, and made small."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Callable

import pytest

from gemmgen.base.source import Source
from gemmgen.expand import pingpong, pipeline_async, pipeline_registers, ring
from gemmgen.expand.pipeline_async import AsyncPipeline
from gemmgen.expand.pipeline_tma import TmaPipeline
from gemmgen.expand.ring import Ring
from gemmgen.fuzz import blame
from gemmgen.fuzz.campaign import Judged, trial_at
from gemmgen.fuzz.random_schedules import schedule_at
from gemmgen.fuzz.shrink import shrink
from gemmgen.ir.buffers import Buffer, Swizzle
from gemmgen.ir.control import Block, Break
from gemmgen.ir.dtypes import DType
from gemmgen.ir.expanded import Timed
from gemmgen.ir.expr import Binary, Expr, Int, Var, walk
from gemmgen.ir.instruction import instruction, is_instruction
from gemmgen.lower import addresses, bounds, epilogue, operands, wmma
from gemmgen.lower.bounds import TileCopy
from gemmgen.lower.context import Context
from gemmgen.lower.swizzle import Known
from gemmgen.lower.types import storable
from gemmgen.passes.double_buffer import DoubleBuffer
from gemmgen.passes.pad import Pad
from gemmgen.pipeline import compile_source

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="runs kernels, with g++")
SEED, MOST_SCHEDULES, MOST_LINES = 1, 200, 8
Plant = Callable[[pytest.MonkeyPatch], None]


def barrier_dropped(patch: pytest.MonkeyPatch) -> None:
    """The barrier between a step's arithmetic and the next step's tiles."""
    body = pipeline_registers.RegisterPipeline._body

    def without(self: pipeline_registers.RegisterPipeline) -> tuple[object, ...]:
        found = body(self)
        barriers = (i for i, node in enumerate(found) if is_instruction(node, "sync_block"))
        last = max(barriers, default=-1)
        return tuple(node for i, node in enumerate(found) if i != last)

    patch.setattr(pipeline_registers.RegisterPipeline, "_body", without)


def stage_off_by_one(patch: pytest.MonkeyPatch) -> None:
    """The next tile goes where the present one is read."""
    patch.setattr(Ring, "before", lambda ring: ring.stage)


def pad_off_by_one(patch: pytest.MonkeyPatch) -> None:
    """Rows that are read wide begin between two words."""
    read = Pad.read

    def longer(said: object, schedule: object) -> Pad:
        one = read(said, schedule)
        return dataclasses.replace(
            one, pads=tuple(dataclasses.replace(p, value=p.value + 1) for p in one.pads)
        )

    patch.setattr(Pad, "read", staticmethod(longer))
    patch.setattr("gemmgen.passes.pad.wide_access", lambda kernel, tile, **_: 1)


def swizzle_forgotten_by_reads(patch: pytest.MonkeyPatch) -> None:
    """Fragments are read where they would be in rows that are not permuted."""
    swizzled = addresses.swizzled

    def forgetful(pattern: Swizzle, row: Expr, rows: int, column: Expr, known: Known) -> Expr:
        names = (e.name for side in (row, column) for e in walk(side) if isinstance(e, Var))
        if any(name.startswith("thread_") for name in names):
            return column
        return swizzled(pattern, row, rows, column, known)

    patch.setattr(addresses, "swizzled", forgetful)


def rounds_end_a_tile_early(patch: pytest.MonkeyPatch) -> None:
    """A round of tiles is left before its last one."""
    node = ring.Break

    def early(condition: Binary) -> Break:
        return node(dataclasses.replace(condition, right=Binary("-", condition.right, Int(1))))

    patch.setattr(ring, "Break", early)


def guard_dropped(patch: pytest.MonkeyPatch) -> None:
    """Loads and stores along n do not look where the matrix ends."""
    inside = bounds.inside

    def unguarded(context: Context, letter: str, *rest: object) -> object:
        return None if letter == context.problem.n else inside(context, letter, *rest)

    patch.setattr(bounds, "inside", unguarded)


def first_tile_taken_for_full(patch: pytest.MonkeyPatch) -> None:
    """Elements before k = 0 are read."""
    patch.setattr(pipeline_async, "edge_of_first", lambda kernel: "stop")
    patch.setattr(pipeline_registers, "edge_of_first", lambda kernel: "stop")


def last_tile_taken_for_any(patch: pytest.MonkeyPatch) -> None:
    """If the first tile is partial, the tiles after the last one are read."""
    inside = bounds.inside

    def unasked(
        context: Context, letter: str, index: Expr, copied: TileCopy | None = None
    ) -> Expr | None:
        if copied is not None and copied.edge == "tile" and letter == context.problem.k:
            return None
        return inside(context, letter, index, copied)

    patch.setattr(bounds, "inside", unasked)


def old_c_always_read(patch: pytest.MonkeyPatch) -> None:
    """beta = 0 reads C."""
    patch.setattr(epilogue, "_skips_old", lambda context, node: False)


def one_group_too_few(patch: pytest.MonkeyPatch) -> None:
    """An asynchronous tile is read while it may be under way."""

    def landed(self: AsyncPipeline) -> tuple[Timed, ...]:
        return (instruction("wait_group", Int(self._ring().stages - 1)), instruction("sync_block"))

    patch.setattr(AsyncPipeline, "_landed", landed)


def ring_begins_again(patch: pytest.MonkeyPatch) -> None:
    """Each tile of a persistent block begins at TMA's first stage and phase."""
    patch.setattr(TmaPipeline, "_goes_on", False)


def fragments_not_converted(patch: pytest.MonkeyPatch) -> None:
    """Bits of f16 and bf16 are multiplied as the integers that they look like."""
    patch.setattr(operands, "computable", lambda element, *_: element)


def result_rounded_to_the_other_half(patch: pytest.MonkeyPatch) -> None:
    """bf16 results are stored as f16."""
    patch.setattr(epilogue, "storable", lambda value, dtype: storable(value, _other(dtype)))


def _other(dtype: DType) -> DType:
    return "f16" if dtype == "bf16" else dtype


def too_few_stages(patch: pytest.MonkeyPatch) -> None:
    """A pass that raises: no schedule may do that."""
    read = DoubleBuffer.read

    def broken(said: object, schedule: object) -> DoubleBuffer:
        one = read(said, schedule)
        assert all(fact.value < 3 for fact in one.buffers)
        return one

    patch.setattr(DoubleBuffer, "read", staticmethod(broken))


def rows_taken_for_columns(patch: pytest.MonkeyPatch) -> None:
    """Tensor cores read tiles as if they lay the other way."""
    line = wmma._line

    def transposed(context: Context, tile: Buffer) -> str:
        return "row" if line(context, tile) == "col" else "col"

    patch.setattr(wmma, "_line", transposed)


def sums_read_at_once(patch: pytest.MonkeyPatch) -> None:
    """A warp's lanes do not wait for one another where accumulators pass through shared memory."""
    patch.setattr(wmma, "instruction", lambda name: Block("", (), ()))


def steps_of_the_other_not_skipped(patch: pytest.MonkeyPatch) -> None:
    """Ping-pong consumers continue where they were in the ring."""
    patch.setattr(pingpong, "_skipped", lambda ring: ())


BUGS: dict[Plant, set[str]] = {
    barrier_dropped: {"race"},
    stage_off_by_one: {"race", "meaning", "wrong result", "never written", "under way"},
    pad_off_by_one: {"misaligned", "IRError"},
    swizzle_forgotten_by_reads: {"meaning", "wrong result"},
    rounds_end_a_tile_early: {"meaning", "wrong result", "not waited for"},
    guard_dropped: {"out of bounds", "meaning", "wrong result", "fault", "two owners"},
    first_tile_taken_for_full: {"out of bounds", "meaning", "fault"},
    last_tile_taken_for_any: {"out of bounds", "meaning", "fault"},
    old_c_always_read: {"wrong result", "meaning", "never written", "out of bounds"},
    one_group_too_few: {"meaning", "under way"},
    ring_begins_again: {
        "meaning",
        "wrong barrier",
        "not waited for",
        "deadlock",
        "race",
        "under way",
        "AssertionError",  # a text that declares `stage` twice is refused as its own mistake
    },
    fragments_not_converted: {"meaning", "wrong result"},
    result_rounded_to_the_other_half: {"meaning", "wrong result"},
    too_few_stages: {"AssertionError"},
    rows_taken_for_columns: {"meaning", "wrong result", "out of bounds"},
    sums_read_at_once: {"race"},
    steps_of_the_other_not_skipped: {
        "not waited for",
        "meaning",
        "deadlock",
        "race",
        "wrong barrier",
        "under way",
    },
}


@pytest.fixture(autouse=True)
def drawn() -> None:
    """Schedules are drawn before a bug is planted, as the passes are asked what is legal."""
    schedule_at(SEED, MOST_SCHEDULES - 1)
    if not UNPLANTED:
        UNPLANTED.update((index, emitted(index)) for index in range(MOST_SCHEDULES))


UNPLANTED: dict[int, str] = {}
"""The kernels of schedules without a bug."""


def emitted(index: int) -> str:
    """The text of the kernel; of a schedule that is refused or makes a pass fail, none."""
    try:
        return compile_source(Source(schedule_at(SEED, index))).text
    except Exception:
        return ""


def first_failure(layers: tuple[str, ...] = ("C0", "C1", "C2")) -> Judged:
    """The first schedule that fails, of those of whose text the bug changes something."""
    for index in range(MOST_SCHEDULES):
        if UNPLANTED.get(index) and emitted(index) == UNPLANTED[index]:
            continue
        trial = trial_at(SEED, index)
        if trial.verdict.failure is not None and trial.verdict.failure.layer in layers:
            return trial
    raise AssertionError(f"nothing is found in {MOST_SCHEDULES} schedules")


@pytest.mark.proof
@pytest.mark.in_proof(share=3)
@pytest.mark.parametrize("plant", BUGS, ids=lambda plant: plant.__name__)
def test_a_planted_bug_is_found(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    failure = first_failure().verdict.failure
    assert failure is not None and failure.kind in BUGS[plant], failure


MADE_SMALL = (
    pad_off_by_one,
    stage_off_by_one,
    guard_dropped,
    too_few_stages,
    last_tile_taken_for_any,
)
"""A failure of each layer, an exception among them."""


@pytest.mark.proof
@pytest.mark.parametrize("plant", MADE_SMALL, ids=lambda plant: plant.__name__)
def test_a_failure_is_made_small(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    trial = first_failure()
    failure = trial.verdict.failure
    assert failure is not None
    small = shrink(trial.text, failure)
    assert small.failure.kind == failure.kind
    assert len(small.text.splitlines()) <= MOST_LINES, small.text
    assert len(small.text) < len(trial.text)


@pytest.mark.proof
def test_a_pass_is_blamed(monkeypatch: pytest.MonkeyPatch) -> None:
    stage_off_by_one(monkeypatch)
    trial = first_failure(("C1",))  # a race is blamed on the directives of its line
    assert trial.verdict.failure is not None
    # Both keep tiles in a ring: the mistake shows after the first of them that a schedule has.
    blamed = blame.blamed(trial.text, trial.verdict.failure).blame
    assert any(name in blamed for name in ("double_buffer", "async_copy"))
