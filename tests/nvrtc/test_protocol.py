"""How samples are taken: their length, what leads, their order, and what is read meanwhile."""

from __future__ import annotations

import ctypes
import itertools
from types import SimpleNamespace
from typing import Any

import pytest

from gemmgen.gpu import nvml, timing
from gemmgen.gpu.nvml import PowerReading
from gemmgen.gpu.timing import LEAD, SPAN, time_interleaved

from .stub_gpu import StubGpu

TIMES = {"a": 0.03, "b": 1.7, "c": 33.0}
"""Milliseconds of kernels that need many launches, some and one for a sample."""


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> StubGpu:
    found = StubGpu()
    monkeypatch.setattr(timing, "cupy", found.cupy)
    return found


def timed(gpu: StubGpu, **keywords: Any) -> dict[str, timing.Timing]:
    kernels = {name: gpu.kernel(name, ms) for name, ms in TIMES.items()}
    return time_interleaved(kernels, warmup=0.0, **keywords)


def runs(gpu: StubGpu, rounds: int) -> list[tuple[str, float]]:
    """Candidates and the milliseconds that each ran without another in between, in ``rounds``."""
    found = [(name, len(list(each)) * TIMES[name]) for name, each in itertools.groupby(gpu.log)]
    return found[-rounds * len(TIMES) :]


@pytest.mark.parametrize("graph", [True, False])
def test_each_sample_has_its_length_and_what_leads_it(gpu: StubGpu, graph: bool) -> None:
    found = timed(gpu, rounds=3, graph=graph)
    for name, ms in TIMES.items():
        assert found[name].samples == pytest.approx([ms] * 3)
    for _, took in runs(gpu, 2):
        assert took >= LEAD + SPAN


def test_orders_are_drawn_each_round_and_are_the_same_in_each_run(gpu: StubGpu) -> None:
    timed(gpu, rounds=12)
    first, gpu.log = list(gpu.log), []
    timed(gpu, rounds=12)
    assert first == gpu.log
    taken = "".join(name for name, _ in itertools.groupby(first))
    assert sum(order in taken for order in map("".join, itertools.permutations("abc"))) >= 4


def test_quick_samples_are_one_batch_and_nothing_leads(gpu: StubGpu) -> None:
    found = timed(gpu, rounds=1, quick=2.0)
    batches = {"a": 67, "b": 2, "c": 1}
    assert {name: timing.launches for name, timing in found.items()} == batches
    rough = 4
    for name, launches in batches.items():
        assert gpu.log.count(name) == rough + 2 * launches  # a batch of the warm-up, and a sample


def test_a_sample_that_was_too_short_is_taken_again(gpu: StubGpu) -> None:
    """A clock that rises after the warm-up."""
    speed = iter([4.0] * 8)

    def launch() -> None:
        gpu.now += next(speed, 1.0)

    (found,) = time_interleaved({"x": launch}, warmup=0.0, rounds=1, graph=False).values()
    assert found.samples == (pytest.approx(1.0),)


class StubLibrary:
    """NVML; ``now``: whether it has the field of the power of this moment."""

    def __init__(self, now: bool) -> None:
        self.now, self.open = now, 0

    def nvmlInit_v2(self) -> int:
        self.open += 1
        return 0

    def nvmlShutdown(self) -> int:
        self.open -= 1
        return 0

    def nvmlDeviceGetHandleByPciBusId_v2(self, address: bytes, handle: Any) -> int:
        return 0 if address == b"0000:01:00.0" else 6

    def nvmlDeviceGetFieldValues(self, handle: Any, count: Any, field: Any) -> int:
        assert ctypes.sizeof(nvml.FieldValue) == 40 and field._obj.field == 186
        field._obj.failed, field._obj.value = (0, 612_345) if self.now else (3, 0)
        return 0

    def nvmlDeviceGetPowerUsage(self, handle: Any, found: Any) -> int:
        found._obj.value = 500_000
        return 0

    def nvmlDeviceGetClockInfo(self, handle: Any, kind: Any, found: Any) -> int:
        found._obj.value = 1755 if kind.value == 1 else 0
        return 0


@pytest.mark.parametrize(("now", "watts"), [(True, 612.345), (False, 500.0)])
def test_power_and_clock_are_read(
    gpu: StubGpu, monkeypatch: pytest.MonkeyPatch, now: bool, watts: float
) -> None:
    library = StubLibrary(now)
    monkeypatch.setattr(nvml, "ctypes", _with(lambda _: library))
    monkeypatch.setattr(nvml, "cupy", gpu.cupy)
    with nvml.meter(0) as meter:
        assert meter is not None and library.open == 1
        assert meter.read() == PowerReading(watts, 1755)
        found = timed(gpu, rounds=2, meter=meter)
    assert library.open == 0
    assert {(x.power, x.clock) for x in found.values()} == {(watts, 1755)}


def test_without_the_library_there_is_no_meter(
    gpu: StubGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nvml, "LIBRARY", "libnot-there.so")
    with nvml.meter(0) as meter:
        assert meter is None
    assert timed(gpu, rounds=1)["a"].power is None


def test_readings_are_medians() -> None:
    readings = [PowerReading(500.0, 1500), PowerReading(None, 1700), PowerReading(520.0, 1600)]
    found = timing.summarize([1.0, 2.0], 1, readings)
    assert (found.power, found.clock) == (510.0, 1600)
    assert timing.summarize([1.0], 1, [PowerReading()]).power is None


def _with(load: Any) -> Any:
    """``ctypes`` with other libraries."""
    return SimpleNamespace(**{**vars(ctypes), "CDLL": load})
