"""Launches that overlap, by the stub of CuPy and a driver that hands them on to it."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

from gemmgen.base.errors import CannotCheck
from gemmgen.gpu import driver_library
from gemmgen.gpu.attributed_launches import (
    DriverAttribute,
    attributed,
)
from gemmgen.gpu.driver_library import LaunchConfig
from gemmgen.ir.launch_attribute import ATTRIBUTES

from .bench import SPLIT, TILED, Bench, forget
from .driver import counter
from .stub import DriverError, ndarray

DEPENDENT = ATTRIBUTES["dependent_launch"]
STARTED = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(LaunchConfig), ctypes.c_void_p, ctypes.c_void_p
)


class Started:
    """What the driver does: the stub's launch, and the attributes of each launch."""

    def __init__(self, library: Path) -> None:
        self.bench: Bench | None = None
        self.attributes: list[tuple[int, int]] = []
        self.shapes: list[tuple[int, ...]] = []
        self.callback = STARTED(self._start)
        place = ctypes.c_void_p.in_dll(ctypes.CDLL(str(library)), "launched")
        place.value = ctypes.cast(self.callback, ctypes.c_void_p).value

    def _start(self, at, function: int, pointers: int) -> int:
        config = at[0]
        assert self.bench is not None and config.attribute_count == 1
        attribute = DriverAttribute.from_address(config.attributes)
        shape = (*config.grid, *config.block, config.shared)
        try:
            self.bench.stub.launch(function, *shape, config.stream or 0, pointers, 0)
        except DriverError as error:
            return error.status
        self.attributes.append((attribute.id, attribute.value[0]))
        self.shapes.append(shape)
        return 0


@pytest.fixture
def started(driver: Path) -> Started:
    return Started(driver)


@pytest.fixture
def bench(
    monkeypatch: pytest.MonkeyPatch, started: Started, request: pytest.FixtureRequest
) -> Iterator[Bench]:
    made = Bench(monkeypatch, getattr(request, "param", TILED), attribute="dependent_launch")
    started.bench = made
    yield made
    forget()


def operands(m: int = 33, n: int = 17, k: int = 20) -> tuple[ndarray, ndarray, np.ndarray]:
    draw = np.random.default_rng([m, n, k])
    a, b = (draw.integers(-4, 5, sides).astype(np.float32) for sides in ((m, k), (k, n)))
    return ndarray(of=a), ndarray(of=b), a @ b


def test_each_launch_has_the_attribute_and_the_shape(bench: Bench, started: Started) -> None:
    a, b, wanted = operands()
    for _ in range(3):
        np.testing.assert_array_equal(bench.kernel(a, b).host, wanted)
    interface = bench.kernel.interface
    assert started.attributes == [(DEPENDENT.number, 1)] * 3
    assert set(started.shapes) == {(6, 1, 1, *interface.block, 1, interface.dynamic_shared)}


def test_a_prepared_launch_is_one_call_of_the_driver(
    bench: Bench, started: Started, driver: Path
) -> None:
    a, b, wanted = operands()
    launch = bench.kernel.prepare(a, b)
    assert counter(driver).value == 0
    for times in (1, 2, 3):
        launch.output.host[...] = 77
        launch()
        np.testing.assert_array_equal(launch.output.host, wanted)
        assert len(started.attributes) == times
        assert counter(driver).value == times + 1  # the first finds no context in this thread


def test_a_launch_is_on_the_stream_that_is_current(bench: Bench) -> None:
    a, b, _ = operands()
    launch, streams = bench.kernel.prepare(a, b), [9, 7, 0, 9, *range(1000, 1100), 9]
    for stream in streams:
        bench.stub.stream = stream
        launch()
    assert [stream for stream, _, _ in bench.stub.launches] == streams


def test_threads_on_streams_of_their_own_do_not_change_one_another_s(bench: Bench) -> None:
    launch = attributed(DEPENDENT, 42, 6, 1, 1, 16, 16, 1, 0)
    seen: list[int] = []
    bench.stub.launch = lambda function, *rest: seen.append(rest[-3])
    threads = [
        Thread(target=lambda at=at: [launch(at, 1, 0) for _ in range(200)]) for at in range(1, 5)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen) == sorted(200 * [1, 2, 3, 4])


@pytest.mark.parametrize("bench", [SPLIT], indirect=True)
def test_scratch_memory_goes_with_it(bench: Bench, started: Started) -> None:
    a, b, _ = operands(16, 16, 64)
    bench.kernel(a, b)
    assert len(started.attributes) == 1


def test_an_error_of_the_driver_is_cupy_s(bench: Bench, driver: Path) -> None:
    a, b, _ = operands()
    kept = counter(driver, "answer")
    kept.value = 719
    try:
        with pytest.raises(DriverError, match="719"):
            bench.kernel(a, b)
    finally:
        kept.value = 0


def test_without_the_directive_the_launch_is_cupy_s(
    monkeypatch: pytest.MonkeyPatch, driver: Path
) -> None:
    a, b, wanted = operands()
    np.testing.assert_array_equal(Bench(monkeypatch, TILED).kernel(a, b).host, wanted)
    assert counter(driver).value == 0
    forget()


def test_an_older_driver_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b, _ = operands()
    monkeypatch.setattr(driver_library, "LIBRARY", "libc.so.6")
    driver_library.driver_function.cache_clear()
    with pytest.raises(CannotCheck, match="older than CUDA 12, whose launches with attributes"):
        Bench(monkeypatch, TILED, attribute="dependent_launch").kernel(a, b)
    driver_library.driver_function.cache_clear()
    forget()
