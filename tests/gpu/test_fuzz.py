"""300 random schedules on a GPU: right, and the bits of the CPU run but for library functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from gemmgen.fuzz.dice import Dice
from gemmgen.fuzz.random_schedules import schedule_at
from gemmgen.fuzz.trial import ARCH, cases, compile_text

from .conftest import CALLS
from .sides import Sides

SEED, SCHEDULES, BATCH = 11, 300, 20


@pytest.mark.parametrize("first", range(0, SCHEDULES, BATCH))
def test_random_schedules_are_right_and_give_the_bits_of_the_cpu_run(
    first: int, record_property: Callable[[str, object], None]
) -> None:
    both = host_only = 0
    for index in range(first, first + BATCH):
        emitted = compile_text(schedule_at(SEED, index))
        if emitted is not None:
            own = emitted.target.endswith("a")
            sides = Sides(emitted, emitted.target if own else ARCH)  # whatever target it names
            chosen = (
                replace(case, order="ascending", skips_product=False)
                for case in cases(emitted, Dice(SEED, index))
            )
            for case in dict.fromkeys(chosen):
                sides.check(case, f"gemmgen fuzz --replay {SEED}:{index}")
            sides.close()
            both, host_only = both + sides.both, host_only + sides.host_only
    record_property(CALLS, (both, host_only))
    assert both > 5 * host_only
