"""300 random schedules on a GPU: right, and the bits of the CPU run but for library functions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gemmgen.fuzz.dice import Dice
from gemmgen.fuzz.draw import schedule_at
from gemmgen.fuzz.trial import ARCH, cases, compile_text

from .sides import Sides

SEED, SCHEDULES, BATCH = 11, 300, 20


@pytest.mark.parametrize("first", range(0, SCHEDULES, BATCH))
def test_random_schedules_are_right_and_give_the_bits_of_the_cpu_run(first: int) -> None:
    for index in range(first, first + BATCH):
        emitted = compile_text(schedule_at(SEED, index))
        if emitted is not None:
            sides = Sides(emitted, ARCH)  # whatever target it names
            chosen = (
                replace(case, order="ascending") for case in cases(emitted, Dice(SEED, index))
            )
            for case in dict.fromkeys(chosen):
                sides.check(case, f"gemmgen fuzz --replay {SEED}:{index}")
            sides.close()
