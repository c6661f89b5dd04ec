"""What ``suggest`` says of TMA: it is estimated and reported, and not chosen."""

from __future__ import annotations

import re

import pytest

from gemmgen.base.source import Source
from gemmgen.explore.suggest import suggest
from gemmgen.explore.suggest.choose import Suggestion
from gemmgen.explore.suggest.tma_variant import boxed
from gemmgen.ir.edit import copies
from gemmgen.pipeline import compile_source
from gemmgen.schedule.formatting import format_schedule

ALIGNED = "C[m, n] = A[k, m] * B[k, n]"
TRANSPOSED = "C[m, n] = A[m, k] * B[k, n]"
RATIO = re.compile(r"(\d\.\d\d) times as long")


def said(found: Suggestion) -> list[str]:
    return [reason for reason in found.reasons if "via=tma" in reason]


def test_both_candidates_are_estimated_and_the_measured_kind_is_kept() -> None:
    found = suggest(ALIGNED, (4096, 4096, 4096))
    assert "async_copy      A B via=cp_async" in found.text
    (reason,) = said(found)
    plain, producer = map(float, RATIO.findall(reason))
    assert 0.8 < plain < producer < 1.2 and "(with a producer)" in reason
    assert "not chosen, since the model was not fitted to such kernels" in reason
    emitted = compile_source(Source(boxed(format_schedule(found.schedule), "sm_90")))
    modes = {copy.mode for copy in copies(emitted.program.main) if copy.src in "AB"}
    assert modes == {"tma"} and emitted.target == "sm_90"


@pytest.mark.parametrize(
    "gemm, shape, gpu",
    [
        (TRANSPOSED, (4096, 4096, 4096), "H200"),
        (ALIGNED, (1002, 1000, 1004), "H200"),
        (ALIGNED, (4096, 4096, 4096), "A100"),
    ],
    ids=["transposed", "rows that are not multiples of 16 bytes", "no TMA"],
)
def test_nothing_is_said_where_tma_copies_no_tiles(
    gemm: str, shape: tuple[int, ...], gpu: str
) -> None:
    assert not said(suggest(gemm, shape, gpu=gpu))
