"""Kernels of the copy engine, of roles and of persistent blocks at their edges, on a GPU."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from gemmgen.base.source import Source
from gemmgen.gpu import device
from gemmgen.gpu.launch import Kernel
from gemmgen.pipeline import compile_source

cp = pytest.importorskip("cupy")

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = sorted(path.stem for path in (EXAMPLES / "hopper").glob("*.sched"))
LAUNCHES = 1000
MOST_US = 8.0
"""Of Python's time, for a prepared launch: 7.4 on an H200's host for a kernel without maps."""


@pytest.fixture(autouse=True)
def copy_engine() -> None:
    if device.capability(cp.cuda.runtime.getDevice()) < (9, 0):
        pytest.skip("the copy engine came with sm_90")


def kernel(name: str) -> Kernel:
    return Kernel.of(compile_source(Source((EXAMPLES / "hopper" / f"{name}.sched").read_text())))


def drawn(rows: int, columns: int, *, pitch: int = 0):
    """Small integers, whose products have exact sums in f32."""
    made = cp.empty((rows, pitch or -(-columns // 4) * 4), "float32")[:, :columns]
    drawing = np.random.default_rng([rows, columns])
    made[...] = cp.asarray(drawing.integers(-4, 5, (rows, columns)).astype("float32"))
    return made


def check(found, a, b) -> None:
    cp.testing.assert_array_equal(found, a.astype("float64").T @ b.astype("float64"))


@pytest.mark.parametrize("name", NAMES)
def test_one_tile_more_than_blocks(name: str) -> None:
    """The GPU's blocks at once, one more, and twice as many and one more; and a single tile."""
    run = kernel(name)
    tile_m, tile_n = dict(run.interface.tiles).values()
    held = device.multiprocessors(cp.cuda.runtime.getDevice())
    for tiles in (1, held - 1, held, held + 1, 2 * held + 1):
        a, b = drawn(70, tiles * tile_m), drawn(70, tile_n - 4)
        check(run(a, b), a, b)
        a, b = drawn(70, tile_m - 5), drawn(70, tiles * tile_n)
        check(run(a, b), a, b)


@pytest.mark.parametrize("name", NAMES)
def test_offsets_do_not_wrap_beyond_2_to_the_31_elements(name: str) -> None:
    """Of an operand along k, and of C along m."""
    run, pitch, rows = kernel(name), 2**31 // 1000 // 4 * 4 + 124, 1100
    a, b = drawn(rows, 70, pitch=pitch), drawn(rows, 92)
    check(run(a, b), a, b)
    del a
    a, b = drawn(40, rows), drawn(40, 92)
    c = cp.empty((rows, pitch), "float32")[:, :92]
    check(run(a, b, c), a, b)


@pytest.mark.parametrize("name", NAMES)
def test_gives_the_same_bits_beside_another_kernel(name: str) -> None:
    """1,000 launches on a stream, while another keeps the multiprocessors busy in pieces."""
    run, rng = kernel(name), cp.random.default_rng(7)
    a, b = (rng.standard_normal((616, size), dtype="float32") for size in (1100, 1404))
    first = run(a, b)
    outputs = [cp.full_like(first, cp.nan) for _ in range(8)]
    launches = [run.prepare(a, b, output) for output in outputs]
    other, own = (cp.cuda.Stream(non_blocking=True) for _ in range(2))
    x = rng.standard_normal((512, 512), dtype="float32")
    cp.cuda.Device().synchronize()
    wrong = cp.zeros((), "int64")
    for turn in range(LAUNCHES):
        with other:
            x = x @ x / 32
        with own:
            launches[turn % 8]()
            if turn % 8 == 7:
                for output in outputs:
                    wrong += (output.view("int32") != first.view("int32")).sum()
                    output.fill(cp.nan)
    cp.cuda.Device().synchronize()
    assert int(wrong) == 0


@pytest.mark.parametrize("name", NAMES)
def test_a_prepared_launch_costs_no_more_with_maps(name: str) -> None:
    run = kernel(name)
    a, b = drawn(16, 128), drawn(16, 128)
    launch = run.prepare(a, b)
    each = []
    for _ in range(20):
        cp.cuda.Device().synchronize()
        start = time.perf_counter()
        for _ in range(200):
            launch()
        each.append((time.perf_counter() - start) / 200 * 1e6)
    print(f"\n{name}: a prepared launch takes {sorted(each)[10]:.1f} us")
    assert min(each) < MOST_US
