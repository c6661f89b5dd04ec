"""Launches of persistent blocks in clusters: the driver says how many run at a time."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from gemmgen.base.errors import CannotCheck
from gemmgen.gpu.driver import INVALID_CONTEXT, Loaded

from .bench import TILED, Bench, forget
from .driver import counter
from .stub import ndarray

CLUSTER = {"cluster": (2, 2), "resident": 1}


@pytest.fixture
def clustered(monkeypatch: pytest.MonkeyPatch, driver: Path) -> Iterator[Bench]:
    yield Bench(monkeypatch, TILED, **CLUSTER)
    forget()


def grid(bench: Bench, m: int, n: int) -> int:
    a, b = ndarray(of=np.ones((m, 4), np.float32)), ndarray(of=np.ones((4, n), np.float32))
    bench.kernel(a, b)
    _, blocks, _ = bench.stub.launches[-1]
    return blocks


def test_a_launch_has_as_many_clusters_as_run_at_a_time(clustered: Bench, driver: Path) -> None:
    """Of 2 x 2 tiles of 16 x 16."""
    assert [grid(clustered, 33, n) for n in (1, 33, 65, 1000)] == [8, 12, 12, 12]
    assert counter(driver).value == 1


def test_the_driver_is_asked_about_the_launch(clustered: Bench, driver: Path) -> None:
    asked = (ctypes.c_uint32 * 7).in_dll(ctypes.CDLL(str(driver)), "asked")
    interface = clustered.kernel.interface
    assert tuple(asked) == (4, 1, 1, *interface.block, 1, interface.dynamic_shared)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [("active", 0, "no cluster of 4 blocks fits"), ("answer", 912, "CUDA error 912")],
)
def test_what_can_not_run_is_not_loaded(
    monkeypatch: pytest.MonkeyPatch, driver: Path, name: str, value: int, said: str
) -> None:
    kept = counter(driver, name)
    before, kept.value = kept.value, value
    try:
        with pytest.raises(CannotCheck, match=said):
            Bench(monkeypatch, TILED, **CLUSTER)
    finally:
        kept.value = before
        forget()


def test_a_thread_that_has_not_used_the_gpu_makes_its_context_current(
    monkeypatch: pytest.MonkeyPatch, driver: Path
) -> None:
    kept = counter(driver, "answer")
    before, kept.value = kept.value, INVALID_CONTEXT
    made: list[Loaded] = []

    def make_current(loaded: Loaded) -> None:
        made.append(loaded)
        kept.value = 0

    monkeypatch.setattr(Loaded, "make_current", make_current)
    try:
        Bench(monkeypatch, TILED, **CLUSTER)
    finally:
        kept.value = before
        forget()
    assert len(made) == 1
