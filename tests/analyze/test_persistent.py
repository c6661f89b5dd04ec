"""A persistent kernel's counts are those of the same kernel with a block for each tile; its blocks
are as many as the GPU holds."""

from __future__ import annotations

import pytest

from gemmgen.analyze.analyzed_kernel import compile_kernel
from gemmgen.analyze.count import count_every_block, count_launch
from gemmgen.analyze.explain import explain
from gemmgen.analyze.launch_arguments import arguments_of
from gemmgen.analyze.tables import report
from gemmgen.base.source import Source
from gemmgen.gpu.gpus import GPUS
from gemmgen.language import parse_schedule
from gemmgen.schedule.model import Schedule

STAGED = """
gemm C[m, n] = A[k, m] * B[k, n]
tile m=64 n=64 k=8
cache_shared A B
register_block m=4 n=4
vectorize A B width=4
double_buffer A B stages=3
async_copy A B via=cp_async
raster group=2
"""
BATCHES = """
gemm C[b, m, n] = A[b, m, k] * B[k, n]
tile m=16 n=16 k=8
cache_shared A B
"""
SHAPES = {STAGED: (300, 260, 70), BATCHES: (35, 50, 21, 3)}


def schedule(text: str) -> Schedule:
    return parse_schedule(Source(text, "x.sched"))


@pytest.mark.by_default("batches")
@pytest.mark.parametrize("text", [STAGED, BATCHES], ids=["staged", "batches"])
def test_counts_are_those_of_a_block_for_each_tile(text: str) -> None:
    found: list[dict[tuple[str, bool], object]] = []
    for line in ("", "persistent"):
        kernel = compile_kernel(schedule(text + line))
        values = arguments_of(kernel.lowered.interface, kernel.program.problem, SHAPES[text])
        counted = count_launch(kernel.lowered, values)
        assert counted == count_every_block(kernel.lowered, values)
        totals: dict[tuple[str, bool], object] = {}
        for site, counts in counted.items():
            key = site.buffer, site.write
            totals[key] = totals[key] + counts if key in totals else counts
        found.append(totals)
    assert found[0] == found[1]


@pytest.mark.usefixtures("estimated")
def test_says_how_many_blocks_walk_over_how_many_tiles() -> None:
    gpu = GPUS["H200"]
    found = explain(schedule(STAGED + "persistent"), (4096, 4096, 64), gpu)
    held = found.kernel.lowered.interface.resident * gpu.sms
    assert found.waves.launched == held == 264
    (launch,) = (row for part in report(found) for row in part.rows if row[0] == "launch")
    said = "264 blocks of 16 x 16 threads, each of which computes 15 or 16 of the 4,096 tiles"
    assert launch[1] == said
