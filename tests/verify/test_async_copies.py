"""Asynchronous copies: wrong expansions, wrong lowerings and wrong texts are seen on a CPU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from gemmgen.expand.pipeline_async import AsyncPipeline
from gemmgen.expand.ring import Ring
from gemmgen.ir.control import Block
from gemmgen.ir.expanded import CopyTileAsync, Timed
from gemmgen.ir.expr import Expr, Int, Select
from gemmgen.ir.instruction import instruction, is_instruction
from gemmgen.lower import async_copies as lowering
from gemmgen.lower.context import Context
from gemmgen.proof import compiled, cpu, meaning
from gemmgen.proof.calls import landings_of
from gemmgen.proof.outcome import Subject
from gemmgen.sim.run import CompiledKernel

from .subjects import TILED, mutant, subject

TWO = """\
gemm           C[m, n] = A[k, m] * B[k, n]
tile           m=32 n=32 k=4
cache_shared   A B
register_block m=4 n=4
vectorize      A B width=4
double_buffer  A B
async_copy     A B via=cp_async
"""
THREE = TWO.replace("double_buffer  A B\n", "double_buffer  A B stages=3\n")
AHEAD = THREE.replace("stages=3\n", "stages=3\ndouble_buffer  A.register B.register\n")
PLAIN = """\
tile           m=16 n=16 k=8
cache_shared   A B
double_buffer  A B stages=4
async_copy     A B via=cp_async
"""
RIGHT = {"two stages": TWO, "three stages": THREE, "fragments ahead": AHEAD, "by one": PLAIN}

Patch = pytest.MonkeyPatch
Plant = Callable[[Patch], None]


@pytest.mark.proof
@pytest.mark.parametrize("name", RIGHT)
def test_right_kernels_hold(name: str) -> None:
    kernel = subject(RIGHT[name])
    assert landings_of(kernel.emitted) == ("late", "early")
    for outcome in (meaning.check(kernel), cpu.check(kernel)):
        assert outcome.status == "passed", outcome


def test_no_architecture_without_the_instruction_is_compiled_for() -> None:
    assert "sm_75" not in compiled.architectures(subject(TWO).emitted)
    assert "sm_75" in compiled.architectures(subject(TILED).emitted)


def test_kernels_without_asynchronous_copies_run_once() -> None:
    assert landings_of(subject(TILED).emitted) == ("late",)


def one_group_too_few(patch: Patch) -> None:
    """N - 1 groups may be under way, not N - 2."""

    def landed(self: AsyncPipeline) -> tuple[Timed, ...]:
        return (instruction("wait_group", Int(self._ring().stages - 1)), instruction("sync_block"))

    patch.setattr(AsyncPipeline, "_landed", landed)


def commit_missing(patch: Patch) -> None:
    """The copies of the loop never end a group."""
    issue_ahead = AsyncPipeline._issue_ahead

    def uncommitted(self: AsyncPipeline, ring: Ring) -> tuple[Timed, ...]:
        *before, phase = issue_ahead(self, ring)
        assert isinstance(phase, Block)
        body = tuple(node for node in phase.body if not is_instruction(node, "commit_group"))
        return (*before, replace(phase, body=body))

    patch.setattr(AsyncPipeline, "_issue_ahead", uncommitted)


def stage_overwritten(patch: Patch) -> None:
    """The next tile goes where the present one is read."""

    class Overwriting(Ring):
        def before(self) -> Expr:
            return self.stage

    right = AsyncPipeline._ring

    def overwriting(self: AsyncPipeline) -> Ring:
        ring = right(self)
        return Overwriting(ring.copies, ring.stages, ring.prefix, ring.unrolled)

    patch.setattr(AsyncPipeline, "_ring", overwriting)


def barrier_missing(patch: Patch) -> None:
    """A thread sees what it has copied itself; others' copies may not be there."""

    def landed(self: AsyncPipeline) -> tuple[Timed, ...]:
        return (instruction("wait_group", Int(self._ring().stages - 2)),)

    patch.setattr(AsyncPipeline, "_landed", landed)


def last_wait_missing(patch: Patch) -> None:
    expand = AsyncPipeline.expand
    patch.setattr(AsyncPipeline, "expand", lambda self: expand(self)[:-1])


def not_zero_filled(patch: Patch) -> None:
    """Every piece is copied whole, whether there is something or not."""

    def whole(context: object, node: CopyTileAsync, row: str, column: str) -> Expr:
        return Int(node.copy.width)

    patch.setattr(lowering, "_valid", whole)


def rounded_up(patch: Patch) -> None:
    """A vector that is partly inside is copied as a whole one."""
    valid = lowering._valid

    def whole(context: Context, node: CopyTileAsync, row: str, column: str) -> Expr:
        inside = valid(context, replace(node, copy=replace(node.copy, width=1)), row, column)
        assert isinstance(inside, Select)
        return replace(inside, yes=Int(node.copy.width))

    patch.setattr(lowering, "_valid", whole)


BY_MEANING: dict[Plant, str] = {
    one_group_too_few: "C[0, 0] is nan",
    commit_missing: "a copy that is not waited for",
    stage_overwritten: "C[0, 0] is ",
    last_wait_missing: "a copy that is not waited for",
    not_zero_filled: "out of bounds",
}
BY_TEXT: dict[Plant, str] = {
    one_group_too_few: "under way: ",
    commit_missing: "under way",
    stage_overwritten: "under way: ",
    barrier_missing: "race: ",
    last_wait_missing: "not waited for: ",
    not_zero_filled: "out of bounds: ",
    rounded_up: "out of bounds: ",
}


@pytest.mark.by_default("not_zero_filled-three stages")
@pytest.mark.parametrize("schedule", (THREE, AHEAD), ids=("three stages", "fragments ahead"))
@pytest.mark.parametrize("plant", BY_MEANING, ids=lambda plant: plant.__name__)
def test_the_programs_meaning_shows_it(plant: Plant, schedule: str, monkeypatch: Patch) -> None:
    right = subject(schedule)
    plant(monkeypatch)
    outcome = meaning.check(right)
    assert outcome.status == "failed"
    assert outcome.detail.startswith("after async_copy: ") and BY_MEANING[plant] in outcome.detail


@pytest.mark.by_default("one_group_too_few-two stages")
@pytest.mark.parametrize("schedule", (TWO, AHEAD), ids=("two stages", "fragments ahead"))
@pytest.mark.parametrize("plant", BY_TEXT, ids=lambda plant: plant.__name__)
def test_a_run_of_the_text_shows_it(plant: Plant, schedule: str, monkeypatch: Patch) -> None:
    plant(monkeypatch)
    outcome = cpu.check(subject(schedule))
    assert outcome.status == "failed" and BY_TEXT[plant] in outcome.detail, outcome.detail
    assert "async_copy A B via=cp_async" in outcome.detail


def held(kernel: Subject, landing: str, monkeypatch: Patch) -> str:
    """The findings of runs without shadow memory if all copies complete at the same time."""
    monkeypatch.setattr(cpu, "landings_of", lambda emitted: (landing,))
    monkeypatch.setattr(
        cpu, "CompiledKernel", lambda text, interface, **_: CompiledKernel(text, interface)
    )
    return cpu.check(kernel).status


@pytest.mark.proof
def test_each_extreme_shows_what_the_other_hides(monkeypatch: Patch) -> None:
    """By values alone: a read before the wait shows late, a store before the wait shows early."""
    too_early = mutant(TWO, "gg_wait_group<0>();", "")
    stored = mutant(
        TWO, "gg_commit_group();", "gg_commit_group();\n    A_shared[0][A_k][A_m] = 0.0f;"
    )
    shows = {
        landing: [held(kernel, landing, monkeypatch) for kernel in (too_early, stored)]
        for landing in ("late", "early")
    }
    assert shows == {"late": ["failed", "passed"], "early": ["passed", "failed"]}
