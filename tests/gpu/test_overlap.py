"""Launches from Python that overlap: they are in order, and take less time in a row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gemmgen.base.source import Source
from gemmgen.gpu import device
from gemmgen.gpu.launch import Kernel
from gemmgen.pipeline import Emitted, compile_source

cp = pytest.importorskip("cupy")

EXAMPLE = Path(__file__).parents[2] / "examples" / "hopper" / "overlap_launch.sched"
SIZE, LINKS = 512, 200


@pytest.fixture(scope="module")
def emitted() -> Emitted:
    if device.capability(cp.cuda.runtime.getDevice()) < (9, 0):
        pytest.skip("programmatic dependent launch came with sm_90")
    return compile_source(Source(EXAMPLE.read_text()))


def chain(kernel: Kernel) -> tuple[Callable[[], None], cp.ndarray, cp.ndarray]:
    """Launches that each read what the one before wrote, their last matrix, and what it
    must be: a product by A permutes rows, so all are exact."""
    drawing = np.random.default_rng(5)
    rows = drawing.permutation(SIZE)
    a = cp.asarray(np.eye(SIZE, dtype=np.float32)[rows])
    first = drawing.integers(-999, 1000, (SIZE, SIZE)).astype(np.float32)
    begin = cp.asarray(first)
    matrices = [cp.empty_like(begin) for _ in range(2)]
    links = [kernel.prepare(a, matrices[at], matrices[1 - at]) for at in range(2)]
    wanted = first
    for _ in range(LINKS):
        wanted = wanted[np.argsort(rows)]

    def run() -> None:
        matrices[0][...] = begin
        for at in range(LINKS):
            links[at % 2]()

    return run, matrices[LINKS % 2], cp.asarray(wanted)


def test_a_chain_is_in_order(emitted: Emitted) -> None:
    run, found, wanted = chain(Kernel.of(emitted))
    for _ in range(20):
        run()
        cp.testing.assert_array_equal(found, wanted)


def test_a_captured_chain_is_in_order(emitted: Emitted) -> None:
    run, found, wanted = chain(Kernel.of(emitted))
    run()
    stream = cp.cuda.Stream(non_blocking=True)
    cp.cuda.Device().synchronize()
    with stream:
        found.fill(0)
        stream.begin_capture()
        run()
        graph = stream.end_capture()
        for _ in range(20):
            graph.launch()
        stream.synchronize()
    cp.testing.assert_array_equal(found, wanted)


@pytest.mark.timing
def test_a_chain_takes_less_time(emitted: Emitted) -> None:
    """Launches wait in the stream after a long product, so that the GPU's time alone is taken."""
    plain = replace(emitted.interface, attribute=None)
    kernels = (Kernel.of(emitted), Kernel(emitted.text, plain, emitted.target))
    runs = [chain(kernel)[0] for kernel in kernels]
    long = cp.ones((8192, 8192), "float32")
    times: list[list[float]] = [[], []]
    for _ in range(9):
        for run, taken in zip(runs, times, strict=True):
            begin, end = cp.cuda.Event(), cp.cuda.Event()
            cp.matmul(long, long)
            begin.record()
            run()
            end.record()
            end.synchronize()
            taken.append(cp.cuda.get_elapsed_time(begin, end) / LINKS * 1e3)
    with_overlap, without = (float(np.median(taken)) for taken in times)
    print(f"\na link takes {with_overlap:.2f} us, without the overlap {without:.2f} us")
    assert with_overlap < without
