"""Launches with tensor maps, by the stub of CuPy and a driver that records what it encodes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from gemmgen.base.errors import CallError, CannotCheck
from gemmgen.gpu import driver_library, tensor_maps
from gemmgen.ir.tensor_map import MapFields, TensorMap

from .bench import TILED, Bench, forget
from .driver import counter
from .stub import ndarray

MAPS = TensorMap("A", (8, 16)), TensorMap("B", (16, 8))
MODES = (7, 2, 1, 1, 0, 0, 2, 0, 0, 0)
"""Type, rank, steps, no interleaving, no swizzle, 128 bytes through L2, zeros outside."""


@pytest.fixture
def mapped(monkeypatch: pytest.MonkeyPatch, driver: Path) -> Iterator[Bench]:
    yield Bench(monkeypatch, TILED, MAPS)
    forget()


def operands(m: int, n: int, k: int, seed: int = 0) -> tuple[ndarray, ndarray]:
    """A and B with rows of a multiple of 16 bytes, at multiples of 16 bytes."""
    draw = np.random.default_rng(seed)

    def drawn(rows: int, columns: int) -> ndarray:
        pitch = -(-columns // 4) * 4 + 4
        memory = draw.integers(-4, 5, rows * pitch + 4).astype(np.float32)
        first = -(memory.ctypes.data // 4) % 4
        return ndarray(of=memory[first : first + rows * pitch].reshape(rows, pitch)[:, :columns])

    return drawn(m, k), drawn(k, n)


def address(array: ndarray) -> int:
    return array.host.ctypes.data


def test_a_kernel_gets_maps_in_place_of_pointers(mapped: Bench) -> None:
    a, b = operands(20, 30, 10)
    c = mapped.kernel(a, b)
    assert np.array_equal(c.host, a.host @ b.host)
    assert mapped.stub.maps == [
        ("A", (address(a), 10, 20, 64, 8, 16, *MODES)),
        ("B", (address(b), 30, 10, 144, 16, 8, *MODES)),
    ]


def test_maps_of_a_known_address_are_not_encoded_again(mapped: Bench, driver: Path) -> None:
    (a, b), (other, _) = operands(20, 30, 10), operands(20, 30, 10, 1)
    calls = counter(driver)
    for first, wanted in ((a, 2), (a, 2), (other, 3), (a, 3), (other, 3)):
        c = mapped.kernel(first, b)
        assert calls.value == wanted
        assert np.array_equal(c.host, first.host @ b.host)


def test_each_extent_and_each_pitch_has_maps_of_its_own(mapped: Bench, driver: Path) -> None:
    a, b = operands(20, 32, 12)
    for rows, columns, terms in ((20, 32, 12), (20, 32, 8), (19, 32, 12), (20, 28, 12)):
        left, right = a[:rows, :terms], b[:terms, :columns]
        assert np.array_equal(mapped.kernel(left, right).host, left.host @ right.host)
    wide, _ = operands(20, 32, 16)
    left = wide[:, :12]
    assert np.array_equal(mapped.kernel(left, b).host, left.host @ b.host)
    strides = [words[3] for name, words in mapped.stub.maps if name == "A"]
    assert strides == [64, 64, 64, 64, 80]


def test_a_prepared_launch_encodes_nothing(mapped: Bench, driver: Path) -> None:
    a, b = operands(20, 30, 10)
    launch = mapped.kernel.prepare(a, b)
    calls = counter(driver)
    assert calls.value == 2
    for _ in range(3):
        launch()
    assert calls.value == 2 and len(mapped.stub.launches) == 3
    assert np.array_equal(launch.output.host, a.host @ b.host)  # type: ignore[attr-defined]


def test_a_bounded_number_of_maps_is_kept(
    mapped: Bench, driver: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tensor_maps, "_KEPT", 4)
    _, b = operands(20, 30, 10)
    lefts = [operands(20, 30, 10, seed)[0] for seed in range(6)]
    for a in (*lefts, lefts[0]):
        assert np.array_equal(mapped.kernel(a, b).host, a.host @ b.host)
    assert counter(driver).value == 1 + 6 + 2  # B and the first A were dropped


def test_an_empty_sum_has_maps_of_one_element(mapped: Bench) -> None:
    a, b = operands(20, 30, 0)
    c = mapped.kernel(a, b)
    assert not c.host.any()
    (_, first), (_, second) = mapped.stub.maps
    assert first[1:3] == (1, 20) and second[1:3] == (30, 1)


def test_alpha_zero_has_maps_of_no_terms(mapped: Bench) -> None:
    a, b = operands(20, 30, 10)
    assert not mapped.kernel(a, b, alpha=0.0).host.any()
    assert mapped.stub.maps[0][1][1:3] == (1, 20)


def test_a_map_that_the_driver_refuses_is_named(mapped: Bench, driver: Path) -> None:
    a, b = operands(20, 30, 10)
    answer = counter(driver, "answer")
    answer.value = 801
    try:
        with pytest.raises(CallError, match="the driver refuses a tensor map of A: CUDA error 801"):
            mapped.kernel(a, b)
    finally:
        answer.value = 0
    assert np.array_equal(mapped.kernel(a, b).host, a.host @ b.host)


def test_without_a_driver_it_says_so(monkeypatch: pytest.MonkeyPatch, driver: Path) -> None:
    fields = MapFields("f32", (4, 4), (16,), (4, 4))
    for name, said in (
        ("libnot_there.so.1", "can't be loaded"),
        ("libc.so.6", "older than CUDA 12"),
    ):
        monkeypatch.setattr(driver_library, "LIBRARY", name)
        driver_library.driver_function.cache_clear()
        with pytest.raises(CannotCheck, match=said):
            tensor_maps.encoded("A", fields, 16)
    driver_library.driver_function.cache_clear()


def test_kernels_without_maps_do_not_import_this(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gemmgen.gpu.tensor_maps", None)
    bench = Bench(monkeypatch, TILED)
    a, b = operands(20, 30, 10)
    assert np.array_equal(bench.kernel(a, b).host, a.host @ b.host)
    forget()
