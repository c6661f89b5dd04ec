"""Suggestions for each known GPU: within its peaks, and for targets that its code runs on."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from gemmgen.base.errors import UsageError
from gemmgen.explore.suggest import suggest
from gemmgen.gpu import device
from gemmgen.gpu.gpu_names import Reported
from gemmgen.gpu.gpus import GPUS, MIB, Gpu
from gemmgen.ir.target import has
from gemmgen.torch import forward

NT = "C[m, n] = A[m, k] * B[n, k]"
TYPES = ("f32", "f64", "f16", "bf16", "tf32", "i8", "e4m3")


def peak(gpu: Gpu, atom: str, operands: str) -> float:
    """Operations a second of the units that a schedule uses."""
    if atom == "fma":
        lanes = gpu.double_lanes if operands == "f64" else gpu.lanes
    else:
        lanes = gpu.tensor_lanes(operands)
    return 2 * lanes * gpu.sms * gpu.clock


@pytest.mark.proof
@pytest.mark.in_proof(share=3)
@pytest.mark.parametrize("name", GPUS)
def test_no_estimate_is_above_the_peak(name: str) -> None:
    gpu, found = GPUS[name], 0
    for dtype in TYPES:
        try:
            one = suggest(NT, 8192, dtype=dtype, gpu=gpu)
        except UsageError as refused:
            assert f" on {name}" in str(refused)
            continue
        found += 1
        target = one.schedule.target
        assert gpu.arch == "sm_90" or not target.endswith("a")
        assert has(gpu.target, int(target.removeprefix("sm_").rstrip("a")))
        operands = one.request.dtype["a"]
        atom = one.emitted.program.main.spread.atom
        assert 2 * 8192**3 / one.chosen.seconds < peak(gpu, atom, operands)
        few = suggest(NT, (1, 8192, 8192), dtype=dtype, gpu=gpu)
        size = {"f64": 8, "f32": 4, "tf32": 4, "f16": 2, "bf16": 2}.get(dtype, 1) * 8192**2
        if size > gpu.cache:
            assert size / few.chosen.seconds < gpu.memory
    assert found >= 4


@pytest.mark.parametrize("name", ["B200", "RTX5090", "H200"])
def test_an_architecture_without_a_target_is_named(name: str) -> None:
    found = suggest(NT, 1024, dtype="bf16", gpu=name)
    said = [reason for reason in found.reasons if reason.startswith("target: ")]
    if name == "B200":
        (one,) = said
        assert one.startswith("target: B200 is sm_100, which is not a target yet: code for sm_90")
    assert bool(said) == (name == "B200")


@pytest.mark.proof
def test_power_and_cache_are_the_gpus_own() -> None:
    """The power limit bounds large products, and the cache what stays from launch to launch."""
    h100 = GPUS["H100"]
    weak = replace(h100, power=h100.power / 2)
    times = [suggest(NT, 8192, dtype="bf16", gpu=gpu).chosen.seconds for gpu in (h100, weak)]
    assert times[1] > 1.2 * times[0]
    small = replace(h100, cache=4 * MIB)
    for dtype in ("f32", "bf16"):
        shape = (64, 2048, 2048)
        times = [suggest(NT, shape, dtype=dtype, gpu=gpu).chosen.seconds for gpu in (h100, small)]
        assert times[1] > times[0]


class _Properties(SimpleNamespace):
    name = "NVIDIA H100 NVL"
    major, minor = 9, 0
    multi_processor_count = 132


def test_pytorchs_device_has_the_figures_of_its_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """What older versions of PyTorch do not report is that of the closest GPU."""
    monkeypatch.setattr(
        forward,
        "pytorch",
        lambda: SimpleNamespace(cuda=SimpleNamespace(get_device_properties=lambda _: has)),
    )
    on = SimpleNamespace(type="cuda", index=0)
    has = _Properties()
    assert forward.gpu_at(on) == replace(GPUS["H100"], name="NVIDIA H100 NVL")
    has = _Properties(
        clock_rate=1785000, memory_clock_rate=2619000, memory_bus_width=6016, L2_cache_size=60 * MIB
    )
    found = forward.gpu_at(on)
    assert found is not None
    assert (found.clock, found.cache) == (1.785e9, 60 * MIB)
    assert found.memory == pytest.approx(3.94e12, rel=0.001)
    has = _Properties(name="NVIDIA H100 80GB HBM3", clock_rate=1980000)
    assert forward.gpu_at(on) is GPUS["H100"]
    assert forward.gpu_at(SimpleNamespace(type="cpu", index=None)) is None


def test_cupys_device_has_the_figures_of_its_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    own = Reported(70, 1.74e9, 9.12e11, 6 * MIB)
    monkeypatch.setattr(device, "name", lambda _: "NVIDIA GeForce RTX 3080")
    monkeypatch.setattr(device, "capability", lambda _: (8, 6))
    monkeypatch.setattr(device, "reported", lambda _: own)
    found = device.figures.__wrapped__(0)
    assert (found.name, found.sms, found.clock) == ("NVIDIA GeForce RTX 3080", 70, 1.74e9)
    assert (found.memory, found.cache, found.sm) == (9.12e11, 6 * MIB, GPUS["RTX3080"].sm)
