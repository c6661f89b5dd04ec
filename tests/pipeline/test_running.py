"""The CPU run's own test: wrong changes of right texts are found out."""

from __future__ import annotations

import pytest
from passes.schedules import CASES

from gemmgen.calling.launches import ORDERS
from gemmgen.sim.failures import KernelFault
from pipeline.running import call, complaint, emitted

MUTANTS = {
    "a k too many": ("naive", "k < K; ++k", "k <= K; ++k"),
    "a row too many": ("naive", "m >= M", "m > M"),
    "alpha lost": ("naive", "alpha * acc", "acc + 0.0f * alpha"),
    "m and n swapped": ("uncoalesced", "(long long)m * ldc + n", "(long long)n * ldc + m"),
    "no barrier": ("tiled", "__syncthreads();", ""),
    "a stage off by one": ("double_buffered", "next_stage = 1 - stage", "next_stage = stage"),
    "a tail of k lost": ("register_blocked", "tile_k < K;", "tile_k + BK <= K;"),
    "a run past its row": ("vectorized", "j + VEC - 1 < cols", "j < cols"),
    "a store past its row": ("vectorized", "first + VEC - 1 < stop", "first < stop"),
    "a stage too few": ("three stages", "STAGES - 1", "STAGES - 2"),
    "a fragment late": ("warp_tiled", "% 2][reg_m]", "% 2 ^ 1][reg_m]"),
    "a band too high": ("bands", "% group_rows", "% (group_rows + 1)"),
}


@pytest.mark.by_default(
    "a row too many", "no barrier", "a stage off by one", "a store past its row"
)
@pytest.mark.parametrize("mutant", MUTANTS)
def test_finds_the_mutant(mutant: str) -> None:
    name, old, new = MUTANTS[mutant]
    case = CASES[name]
    kernel = emitted(case.text)
    assert old in kernel.text, f"the emitted text has no {old!r} any more: mend this test"
    changed = kernel.text.replace(old, new)
    for order in ORDERS:
        for tight in (False, True):
            each = call(33, 147, 45, 0.7, -1.0, order=order, tight=tight)
            try:
                if complaint(kernel, each, changed) is not None:
                    return
            except KernelFault:
                return
    pytest.fail("no run shows the mutant")
