"""Occupancy, waves and the roofline."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import compilers
import pytest

from gemmgen.analyze.analyzed_kernel import compile_kernel
from gemmgen.analyze.explain import explain
from gemmgen.analyze.register_estimate import ADDRESSES
from gemmgen.analyze.resource_tables import registers_line
from gemmgen.analyze.resources import Resources, Waves, architecture, occupancy_of
from gemmgen.base.errors import UsageError
from gemmgen.base.source import Source
from gemmgen.gpu.gpus import GPUS
from gemmgen.ir.target import TARGETS
from gemmgen.language import parse_schedule
from gemmgen.schedule.model import Schedule
from gemmgen.schedule.read import read_source

H200 = GPUS["H200"]
VECTORIZED = """
tile m=128 n=128 k=8
cache_shared A[k, m] B[k, n]
register_block m=8 n=8
vectorize A B C width=4
pad A by=4
double_buffer A B
"""


@pytest.mark.parametrize(
    ("gpu", "threads", "shared", "registers", "blocks", "limiter"),
    [
        ("H200", 256, 16640, 128, 2, "registers"),
        ("H200", 256, 16640, 64, 4, "registers"),
        ("H200", 256, 49664, 32, 4, "shared memory"),
        ("H200", 1024, 0, 32, 2, "registers"),
        ("H200", 1024, 0, 16, 2, "threads"),
        ("H200", 32, 0, 16, 32, "blocks"),
        ("H200", 256, 227 * 1024, 128, 1, "shared memory"),
        ("RTX4090", 256, 16640, 128, 2, "registers"),
        ("RTX4090", 256, 16640, 40, 5, "shared memory"),
        ("RTX4090", 1024, 0, 32, 1, "threads"),
        ("A100", 256, 0, 255, 1, "registers"),
        ("T4", 1024, 0, 64, 1, "registers"),
    ],
)
def test_occupancy_and_its_limiter(
    gpu: str, threads: int, shared: int, registers: int, blocks: int, limiter: str
):
    found = occupancy_of(Resources(threads, shared, registers, 0), GPUS[gpu])
    assert (found.blocks, found.limiter) == (blocks, limiter)
    assert found.warps == blocks * threads // 32


def test_waves_and_the_last_ones_fill():
    waves = Waves(blocks=1024, per_wave=264, sms=132)
    assert waves.count == 4
    assert waves.last_fill == (1024 - 3 * 264) / 264
    assert waves.efficiency == 1024 / (4 * 264)
    assert waves.balance == 1024 / (8 * 132)
    assert Waves(264, 264, 132).last_fill == 1


def test_every_gpu_has_a_target_and_holds_its_largest_block():
    for gpu in GPUS.values():
        assert gpu.shared >= TARGETS[gpu.target].shared
        assert occupancy_of(Resources(1024, 0, 64, 0), gpu).blocks >= 1


def load(name: str) -> Schedule:
    path = Path(__file__).parents[2] / "examples" / f"{name}.sched"
    return parse_schedule(read_source(str(path)))


def test_a_gpu_older_than_the_target_is_refused():
    plain, fast = (load(name) for name in ("vectorized", "best/bf16_8192"))
    assert architecture(plain, H200) == "sm_90"
    assert architecture(fast, H200) == "sm_90a"
    needs = "the schedule needs sm_90, and A100 is sm_80: use --arch sm_80"
    with pytest.raises(UsageError, match=needs):
        architecture(replace(plain, target="sm_90"), GPUS["A100"])


@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("name", ["vectorized", "best/bf16_8192", "async_copy", "mma/fp8"])
def test_the_hint_on_a_gpu_is_one_that_works(name: str, gpu: str):
    schedule = load(name)
    for model in (GPUS[gpu], None):
        try:
            assert architecture(schedule, model or GPUS[gpu])
            return
        except UsageError as error:
            option, value = re.search(r": use (--\w+) (\S+)$", str(error)).groups()
        if option == "--gpu":
            gpu = value
        else:
            schedule = replace(schedule, target=value)
            compile_kernel(schedule)
    raise AssertionError(schedule)


def test_peaks_are_those_of_the_data_sheets():
    assert H200.flops == pytest.approx(66.9e12, rel=0.001)
    assert GPUS["A100"].flops == pytest.approx(19.5e12, rel=0.001)
    assert GPUS["RTX4090"].flops == pytest.approx(82.6e12, rel=0.001)
    assert GPUS["RTX3080"].flops == pytest.approx(29.8e12, rel=0.003)
    assert GPUS["RTX4060Ti"].flops == pytest.approx(22.06e12, rel=0.003)


@pytest.mark.parametrize(
    ("name", "arch", "cores", "bits", "gigabits"),
    [
        ("A100", "sm_80", 6912, 5120, 2.43),
        ("A100-80GB", "sm_80", 6912, 5120, 3.186),
        ("RTX3080", "sm_86", 8704, 320, 19),
        ("RTX4060Ti", "sm_89", 4352, 128, 18),
    ],
)
def test_the_documents_gpus_have_the_lanes_and_the_memory_of_their_sheets(
    name: str, arch: str, cores: int, bits: int, gigabits: float
):
    gpu = GPUS[name]
    assert (gpu.arch, gpu.sms * gpu.lanes) == (arch, cores)
    assert gpu.memory == pytest.approx(bits / 8 * gigabits * 1e9, rel=0.001)


def test_one_architecture_has_one_set_of_limits():
    limits = {(g.arch, g.lanes, g.shared, g.threads, g.blocks, g.reserved) for g in GPUS.values()}
    assert len(limits) == len({gpu.arch for gpu in GPUS.values()})
    for gpu in GPUS.values():
        if gpu.arch in TARGETS:
            target = TARGETS[gpu.arch]
            assert (gpu.shared, gpu.threads) == (target.all_shared, target.threads)
            assert (gpu.blocks, gpu.reserved) == (target.blocks, target.reserved)


def test_without_a_compiler_registers_are_estimated(monkeypatch: pytest.MonkeyPatch):
    with compilers.none_at_all(monkeypatch):
        found = explain(parse_schedule(Source(VECTORIZED)), (512, 512, 512), H200)
    assert found.resources.registers == 64 + 16 + 8 + ADDRESSES
    assert found.resources.estimated and "nvcc" in found.resources.unknown
    assert found.resources.spills is None and found.occupancy.limiter == "registers"
    assert "estimated from its arrays" in registers_line(found.resources)


def test_spills_are_the_compilers_own_figures():
    used = Resources(256, 0, 128, 28, 24, "nvcc 13.0.88")
    message = "128 a thread, spills 28 bytes of stores + 24 of loads (nvcc 13.0.88)"
    assert registers_line(used) == message and used.spills == 52


@pytest.mark.proof
def test_the_bounds_of_a_kernel_worked_out_by_hand():
    """Per k and warp 64 multiply-adds; 2 reads of A from 2 addresses, 2 clocks each, and 2 of B
    from 16, 4 clocks each.  The stores add a clock for every 32 elements.  An SM has 8 of the 1024
    blocks, 7.76 on average."""
    found = explain(parse_schedule(Source(VECTORIZED)), (4096, 4096, 4096), H200)
    seconds = {bound.name: bound.seconds for bound in found.roofline.bounds}
    assert found.balance == 1024 / (8 * 132)
    assert seconds["FP32 lanes"] == pytest.approx(2 * 4096**3 / H200.flops / found.balance)
    reads = 4096**3 / 32 / 64 * (2 * 2 + 2 * 4)
    stores = 2 * 4096**3 / 128 / 32
    lines = sum(t.counts.lines for t in found.traffic)
    clocks = (reads + stores + lines) / H200.sms / H200.clock / found.balance
    assert seconds["shared memory and L1"] == pytest.approx(clocks, rel=0.001)
    assert seconds["device memory"] == pytest.approx(3 * 4 * 4096**2 / H200.memory)
    assert found.roofline.intensity == pytest.approx(4096 / 6)
    assert found.roofline.attainable < H200.flops


@pytest.mark.usefixtures("estimated")
def test_the_naive_kernel_is_bound_by_l1():
    """Two lines for 32 multiply-adds a clock and SM: 8.4 of 66.9 TFLOP/s."""
    naive = explain(parse_schedule(Source("bind x=n y=m")), (4096, 4096, 4096), H200)
    assert naive.roofline.binding.name == "shared memory and L1"
    assert naive.roofline.attainable == pytest.approx(H200.flops / 8, rel=0.01)


def test_padding_at_ragged_edges_is_work_too():
    found = explain(parse_schedule(Source(VECTORIZED)), (129, 128, 9), H200)
    assert found.fmas == 256 * 128 * 16
    assert found.roofline.flops == 2 * 129 * 128 * 9


@pytest.mark.usefixtures("estimated")
def test_reading_c_is_traffic_of_its_own():
    schedule = parse_schedule(Source(VECTORIZED))
    without, reading = (explain(schedule, (512, 512, 64), H200, beta=b) for b in (0.0, 1.0))
    assert "C read" not in [t.name for t in without.traffic]
    assert next(t for t in reading.traffic if t.name == "C read").counts.elements == 512 * 512


@pytest.mark.parametrize("shape", [(0, 4, 4), (4, 0, 4), (4, 4, 0)])
def test_an_empty_shape_is_refused(shape: tuple[int, int, int]):
    with pytest.raises(UsageError, match="extents of at least 1"):
        explain(parse_schedule(Source(VECTORIZED)), shape, H200)


def test_a_shape_that_breaks_an_assumption_is_refused():
    schedule = parse_schedule(Source("assume K % 4 == 0" + VECTORIZED))
    with pytest.raises(UsageError, match="64x64x6: it requires K % 4 == 0"):
        explain(schedule, (64, 64, 6), H200)
