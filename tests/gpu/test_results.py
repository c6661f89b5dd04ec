"""Measured results on a GPU: its names, and what ships with gemmgen run there as it says."""

from __future__ import annotations

import pytest

from gemmgen.base.source import Source
from gemmgen.explore.request import Request
from gemmgen.explore.results import results_store
from gemmgen.explore.results.measured_result import MachineInfo, MeasuredResult, ProblemKey
from gemmgen.explore.results.results_store import Results
from gemmgen.explore.results.shipped_table import shipped
from gemmgen.explore.suggest.choose import choose
from gemmgen.gpu import device
from gemmgen.gpu.bench import Entry, bench
from gemmgen.gpu.gpu_names import same_gpu
from gemmgen.pipeline import compile_source
from gemmgen.proof.gpu import reference_of
from gemmgen.schedule.roles import extents

TEXT = "tile m=64 n=64 k=16\ncache_shared A[k, m] B[k, n]\nregister_block m=4 n=4\n"
LEAST = 2e-5
"""Seconds below which the time between launches counts."""
WITHIN = 1.35
"""How much longer a kernel may take than its result says: runs differ in clock and power."""


def here() -> MachineInfo:
    return MachineInfo.here(device.cupy().cuda.runtime.getDevice())


def test_the_machine_has_names_and_versions() -> None:
    found = here()
    assert found.gpu and found.arch.startswith("sm_") and found.driver and found.cuda


def test_a_result_of_this_gpu_is_found_by_its_figures() -> None:
    """What ``tune`` stores by the driver's name, an operator finds for the device's ``Gpu``."""
    results_store._shared.cache_clear()
    machine, shape = here(), (333, 334, 335)
    result = MeasuredResult.of(TEXT, shape, machine, 1e-6)
    assert Results.open().record(result)
    gpu = device.figures(device.cupy().cuda.runtime.getDevice())
    key = ProblemKey.of(compile_source(Source(TEXT)).schedule, shape)
    assert Results.open().best(key, gpu.name) == result
    found = choose(Request.of("C[m, n] = A[m, k] * B[k, n]", shape, gpu=gpu))
    assert found.chosen.measured is not None and found.chosen.measured.result == result
    results_store._shared.cache_clear()


def mine() -> list[MeasuredResult]:
    """A sample of the shipped results for this GPU, of each problem."""
    name = here().gpu
    every = [x for x in shipped().all() if x.seconds >= LEAST]
    found = [x for x in every if same_gpu(x.machine.gpu, name)]
    if not found:
        pytest.skip(f"no results for {name} ship with gemmgen")
    problems = dict.fromkeys(x.problem.text for x in found)
    return [x for text in problems for x in [y for y in found if y.problem.text == text][::12]]


@pytest.mark.timing
def test_shipped_schedules_are_right_and_as_fast_as_they_say() -> None:
    slow: list[str] = []
    for result in mine():
        emitted = compile_source(Source(result.schedule))
        names = extents(emitted.schedule.gemm).values()
        sizes = dict(zip(names, result.problem.shape, strict=True))
        entry = Entry.of("shipped", emitted, reference_of(emitted))
        rows = bench([entry], [sizes], warmup=0.5, rounds=5, checked_rows=32)
        (row,) = (x for x in rows if x.name == "shipped")
        assert row.checked and row.ms is not None, result.schedule
        if row.ms > WITHIN * result.seconds * 1e3:
            slow.append(f"{result.problem.shape}: {row.ms * 1e3:.1f} us, {result.described()}")
    assert len(slow) <= 2, "\n".join(slow)
