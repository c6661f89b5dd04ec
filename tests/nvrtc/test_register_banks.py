"""Register bank conflicts, instruction by instruction."""

from __future__ import annotations

import pytest

from gemmgen.gpu.register_banks import (
    MAXWELL,
    VOLTA,
    banks_of,
    conflicts,
    fetched,
    has_conflict,
    sources,
)
from gemmgen.gpu.sass import SassInstruction


def ffma(operands: str) -> SassInstruction:
    return SassInstruction(0, "FFMA", operands)


def test_sources_have_positions_and_marks() -> None:
    assert sources(ffma("R8, -R9.reuse, R10, R8")) == ((9, True), (10, False), (8, False))
    assert sources(ffma("R8, R9, c[0x0][0x160], RZ")) == ((9, False), None, None)
    assert sources(ffma("R8, |R9|, 1.5, -R3")) == ((9, False), None, (3, False))


@pytest.mark.parametrize(
    ("operands", "volta", "maxwell"),
    [
        ("R0, R2, R4, R6", True, True),  # all even; 2 and 6 share one of four
        ("R0, R2, R4, R7", False, False),
        ("R0, R1, R3, R5", True, True),
        ("R0, R1, R5, R2", False, True),
        ("R0, R2, R2, R4", False, False),  # two registers, and one is fetched once
        ("R0, R2, R4, RZ", False, False),
        ("R0, R2, c[0x0][0x4], R6", False, True),
    ],
)
def test_banks_deliver_these_registers_per_clock(operands: str, volta: bool, maxwell: bool) -> None:
    assert has_conflict(ffma(operands), None, VOLTA) is volta
    assert has_conflict(ffma(operands), None, MAXWELL) is maxwell


def test_an_operand_that_was_kept_is_not_fetched() -> None:
    instruction = ffma("R0, R2, R4, R6")
    assert not has_conflict(instruction, ffma("R1, R2.reuse, R5, R7"))
    assert fetched(instruction, ffma("R1, R2.reuse, R5, R7")) == {4, 6}
    assert has_conflict(instruction, ffma("R1, R2, R5, R7"))  # not kept
    assert has_conflict(instruction, ffma("R1, R5, R2.reuse, R7"))  # in another position


def test_the_first_instruction_of_a_loop_follows_the_last() -> None:
    keeps = ffma("R1, R2.reuse, R5, R7")
    assert conflicts((ffma("R0, R2, R4, R6"), keeps)) == 0
    assert conflicts((ffma("R0, R2, R4, R6"), ffma("R1, R2, R5, R7"))) == 1
    assert conflicts(()) == 0


def test_only_multiply_adds_of_single_registers_are_judged() -> None:
    assert not has_conflict(SassInstruction(0, "IADD3", "R0, R2, R4, R6"), None)
    assert not has_conflict(SassInstruction(0, "DFMA", "R0, R2, R4, R6"), None)


def test_an_architecture_has_its_register_file() -> None:
    assert banks_of("sm_75") == banks_of("sm_90a") == banks_of("sm_120") == VOLTA
    assert banks_of("sm_61") == MAXWELL
