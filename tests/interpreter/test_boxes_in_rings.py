"""Mistakes in the ring of TMA are found by the interpreter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from passes.schedules import CASES

from gemmgen.base.source import Source
from gemmgen.expand.pipeline_tma import TmaPipeline
from gemmgen.expand.ring import Ring
from gemmgen.ir.control import Assign, Block
from gemmgen.ir.expanded import CopyBox, OneThread, Timed
from gemmgen.ir.expr import Binary, Expr, Int
from gemmgen.ir.instruction import Instruction, instruction, is_instruction
from gemmgen.language import parse_schedule
from gemmgen.pipeline import compile_schedule, make_concrete
from gemmgen.proof.equivalence import same_meaning

NAME, SHAPE = "TMA, read ahead", (36, 68, 44)

Plant = Callable[[pytest.MonkeyPatch], None]


def difference() -> str | None:
    program = compile_schedule(parse_schedule(Source(CASES[NAME].text))).program
    found = same_meaning(make_concrete(program), program.problem, SHAPE)
    return found and found.text()


def never_waits(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TmaPipeline, "_landed", lambda *_: (instruction("sync_block"),))


def never_turns(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Ring, "turn_phase", lambda ring, _: Assign(ring.phase.name, ring.phase))


def _issued(patch: pytest.MonkeyPatch, change: Callable[[Timed], tuple[Timed, ...]]) -> None:
    right = TmaPipeline._issues

    def wrong(self: TmaPipeline, ring: Ring, origin: Expr, stage: Expr) -> tuple[Timed, ...]:
        return tuple(new for node in right(self, ring, origin, stage) for new in change(node))

    patch.setattr(TmaPipeline, "_issues", wrong)


def _expects(patch: pytest.MonkeyPatch, more: int) -> None:
    def change(node: Timed) -> tuple[Timed, ...]:
        if isinstance(node, Instruction) and node.name == "expect_bytes":
            barrier, size = node.operands
            node = replace(node, operands=(barrier, size + more))
        return (node,)

    _issued(patch, change)


def expects_too_few(patch: pytest.MonkeyPatch) -> None:
    _expects(patch, -16)


def expects_too_many(patch: pytest.MonkeyPatch) -> None:
    _expects(patch, 16)


def expects_nothing(patch: pytest.MonkeyPatch) -> None:
    _issued(patch, lambda node: () if is_instruction(node, "expect_bytes") else (node,))


def shifts_a_box(patch: pytest.MonkeyPatch) -> None:
    def change(node: Timed) -> tuple[Timed, ...]:
        if isinstance(node, CopyBox):
            node = replace(node, origin=Binary("+", node.origin, Int(1)))
        return (node,)

    _issued(patch, change)


def fences_nothing(patch: pytest.MonkeyPatch) -> None:
    right = TmaPipeline._barriers

    def wrong(self: TmaPipeline, ring: Ring) -> Timed:
        block = right(self, ring)
        assert isinstance(block, Block)
        array, once, *rest = block.body
        assert isinstance(once, OneThread)
        kept = tuple(node for node in once.body if not is_instruction(node, "fence_barrier_init"))
        return replace(block, body=(array, replace(once, body=kept), *rest))

    patch.setattr(TmaPipeline, "_barriers", wrong)


def asks_past_the_end(patch: pytest.MonkeyPatch) -> None:
    right = TmaPipeline._issue_ahead

    def wrong(self: TmaPipeline, ring: Ring) -> tuple[Timed, ...]:
        *before, block = right(self, ring)
        assert isinstance(block, Block)
        (issues,) = block.body
        assert isinstance(issues, OneThread)
        return (*before, replace(block, body=(replace(issues, condition=None),)))

    patch.setattr(TmaPipeline, "_issue_ahead", wrong)


def reads_ahead_past_the_end(patch: pytest.MonkeyPatch) -> None:
    right = TmaPipeline._multiply_reading_ahead

    def wrong(self: TmaPipeline, *arguments: object) -> Timed:
        return right(self, *arguments[:-1], None)  # type: ignore[arg-type]

    patch.setattr(TmaPipeline, "_multiply_reading_ahead", wrong)


PLANTS: dict[Plant, str] = {
    never_waits: "one arrival too many",
    never_turns: "not waited for",
    expects_too_few: "no thread can go on",
    expects_too_many: "no thread can go on",
    expects_nothing: "no thread can go on",
    shifts_a_box: "C[",
    fences_nothing: "TMA does not see it yet",
    asks_past_the_end: "not waited for",
    reads_ahead_past_the_end: "no thread can go on",
}


def test_the_ring_is_right() -> None:
    assert difference() is None


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.__name__)
def test_finds(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    found = difference()
    assert found is not None and PLANTS[plant] in found, found
