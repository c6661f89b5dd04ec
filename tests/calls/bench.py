"""A kernel loaded by the stub of CuPy."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gemmgen.api.kernels import compile_any
from gemmgen.gpu import arrays, device
from gemmgen.gpu.launch import Kernel
from gemmgen.gpu.store import Stored
from gemmgen.ir.tensor_map import TensorMap

from .stub import Stub

TILED = "tile m=16 n=16 k=8\ncache_shared A B\n"
WIDE = "tile m=64 n=64 k=16\ncache_shared A[k, m] B\nregister_block m=4 n=4\nvectorize C width=4\n"
SPLIT = TILED + "split_k parts=2\n"


class Bench:
    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        text: str,
        maps: tuple[TensorMap, ...] = (),
        **others: Any,
    ) -> None:
        """The kernel of a schedule, as if it took ``maps``, and had ``others`` in its interface."""
        emitted = compile_any(text)
        emitted = replace(emitted, interface=replace(emitted.interface, maps=maps, **others))
        self.stub = Stub(emitted.interface)
        monkeypatch.setitem(sys.modules, "cupy", self.stub)
        monkeypatch.setattr(arrays, "_LIBRARIES", {})
        monkeypatch.setattr(arrays, "_OF_TYPE", {})
        forget()
        files = Stored(Path("none.cubin"), Path("none.cu"))
        self.kernel = Kernel(emitted.text, emitted.interface, emitted.target, files=files)


def forget() -> None:
    """What is kept of the module ``cupy``."""
    for kept in (device.cupy, device.capability):
        kept.cache_clear()


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest):
    yield Bench(monkeypatch, getattr(request, "param", TILED))
    forget()
