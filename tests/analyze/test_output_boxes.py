"""What TMA stores is counted: whole boxes are read, what is inside C is written."""

from __future__ import annotations

import pytest
from passes.schedules import CASES

from gemmgen.analyze.access_counts import Counts
from gemmgen.analyze.analyzed_kernel import compile_kernel
from gemmgen.analyze.count import count_every_block, count_launch
from gemmgen.analyze.launch_arguments import arguments_of
from gemmgen.base.source import Source
from gemmgen.language import parse_schedule

NAMES = ("C by TMA", "C by TMA, rows of warps")


def counted(name: str, shape: tuple[int, ...]) -> dict[tuple[str, bool], Counts]:
    """TMA's own, by buffer and whether it is written."""
    kernel = compile_kernel(parse_schedule(Source(CASES[name].text, "x.sched")))
    values = arguments_of(kernel.lowered.interface, kernel.program.problem, shape)
    found = count_launch(kernel.lowered, values)
    assert found == count_every_block(kernel.lowered, values)
    return {(site.buffer, site.write): counts for site, counts in found.items() if site.boxes}


@pytest.mark.parametrize("name", NAMES)
def test_rows_are_stored_as_whole_sectors(name: str) -> None:
    found = counted(name, (64, 128, 16))
    size = 64 * 128
    assert found == {
        ("C_shared", False): Counts(
            size, phases=size // 32, wavefronts=size // 32, clocks=size // 32
        ),
        ("C", True): Counts(size, sectors=size // 8),
    }


@pytest.mark.parametrize("name", NAMES)
def test_whole_boxes_are_read_and_what_is_outside_is_not_written(name: str) -> None:
    rows = 35 if name == NAMES[0] else 36  # of 16 bytes, where rows of C are along m
    found = counted(name, (rows, 68, 12))
    covered = {NAMES[0]: (2 * 32) * (2 * 64), NAMES[1]: (64 * 1) * (32 * 3)}
    assert found["C_shared", False].elements == covered[name]
    assert found["C", True].elements == rows * 68
