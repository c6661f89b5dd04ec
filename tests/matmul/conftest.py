from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from gemmgen.functions import array_kinds, cupy_calls, product, written
from gemmgen.gpu import device
from gemmgen.gpu.gpus import GPUS
from gemmgen.pipeline import Emitted

from .fakes import FakeCupy, FakeKernel


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeCupy]:
    """A module like CuPy, whose GPU is an H200 by its figures."""
    found = FakeCupy()

    def kernel(emitted: Emitted, gpu: int) -> FakeKernel:
        return FakeKernel(emitted, found.calls)

    monkeypatch.setitem(sys.modules, "cupy", found)
    device.cupy.cache_clear()
    monkeypatch.setattr(array_kinds.CupyKind, "gpu", lambda self, value: GPUS["H200"])
    monkeypatch.setattr(product, "_handlers", {})
    for module in (array_kinds, cupy_calls, written):
        monkeypatch.setattr(module, "cupy_kernel", kernel)
    monkeypatch.setattr(cupy_calls, "_ready", type(cupy_calls._ready)(64))
    yield found
    device.cupy.cache_clear()
