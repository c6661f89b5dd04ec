"""The GPU here among the known ones: what its driver reports is what the table says."""

from __future__ import annotations

import pytest

from gemmgen.gpu import device
from gemmgen.gpu.gpu_names import gpu_named, gpu_of
from gemmgen.gpu.gpus import GPUS

pytestmark = pytest.mark.skipif(device.missing() is not None, reason=device.missing() or "")


def test_the_gpus_row_is_what_its_driver_reports() -> None:
    own, name = device.reported(0), device.name(0)
    found = gpu_of(name, device.capability(0), own)
    if found not in GPUS.values():
        pytest.skip(f"{name} has no row of its own")
    assert gpu_named(name) is found and own.sms == found.sms
    assert own.clock == pytest.approx(found.clock, rel=0.02)
    assert own.memory == pytest.approx(found.memory, rel=0.05)
    assert own.cache is not None and own.cache == pytest.approx(found.cache, rel=0.05)
    attribute = device.cupy().cuda.runtime.deviceGetAttribute
    limits = [attribute(number, 0) for number in (39, 81, 106, 111)]
    assert limits == [found.threads, found.shared, found.blocks, found.reserved]


def test_pytorch_and_cupy_find_the_same_gpu() -> None:
    torch = pytest.importorskip("torch")
    from gemmgen.torch.forward import gpu_at

    found = gpu_at(torch.device("cuda", 0))
    assert found is not None
    assert found.name in (device.name(0), gpu_named(device.name(0)).name)
    assert (found.sms, found.sm) == (device.figures(0).sms, device.figures(0).sm)
