"""Each call of a kernel: how it is checked, what it allocates, who may call it when."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

import gemmgen
from gemmgen.base.errors import CallError

EXAMPLES = Path(__file__).parents[2] / "examples"
TILED = "tile m=16 n=16 k=8\ncache_shared A B\n"
WIDE = "tile m=64 n=64 k=16\ncache_shared A[k, m] B\nregister_block m=4 n=4\nvectorize C width=4\n"
SPLIT = TILED + "split_k parts=4\n"

cp = pytest.importorskip("cupy")


def integers(*shape: int) -> cp.ndarray:
    draw = np.random.default_rng(sum(shape))
    return cp.asarray(draw.integers(-4, 5, shape).astype(np.float32))


def same(found: object, wanted: np.ndarray) -> None:
    assert isinstance(found, cp.ndarray)
    np.testing.assert_array_equal(found.get(), wanted)


def test_tensors_go_by_position() -> None:
    kernel = gemmgen.compile(TILED)
    a, b, c = integers(33, 20), integers(20, 17), integers(33, 17)
    want = a.get() @ b.get()
    same(kernel(a, b), want)
    assert kernel(a, b, c, alpha=np.array(2.0)) is c
    same(c, 2 * want)
    same(kernel(a, C=c, B=b), want)
    with pytest.raises(CallError, match="A is given twice"):
        kernel(a, b, A=a)
    with pytest.raises(CallError, match=r"alpha is an array on a GPU; .* pass .item\(\)"):
        kernel(a, b, alpha=cp.array(2.0))


def test_a_wide_kernel_takes_the_output_that_it_allocates() -> None:
    kernel = gemmgen.compile(WIDE)
    a, b = integers(33, 20), integers(20, 45)
    found = kernel(a, b)
    assert found.shape == (33, 45) and found.strides == (48 * 4, 4)
    same(found, a.get() @ b.get())
    with pytest.raises(CallError, match="ldc = 45, and the kernel needs ldc % 4 == 0: pad"):
        kernel(a, b, integers(33, 45))
    batched = gemmgen.compile("gemm C[b, m, n] = A[b, m, k] * B[k, n]\n" + WIDE)
    a = integers(3, 33, 20)
    same(batched(a, b), a.get() @ b.get())


@pytest.mark.parametrize("text", [TILED, SPLIT])
def test_threads_call_one_kernel_at_once(text: str) -> None:
    kernel, wrong = gemmgen.compile(text), []

    def work(at: int) -> None:
        a, b = integers(20 + at, 40), integers(40, 17)
        want = a.get() @ b.get()
        with cp.cuda.Stream(non_blocking=True) as stream:
            for _ in range(100):
                found = kernel(a, b, alpha=at)
                stream.synchronize()
                if not (found.get() == at * want).all():
                    wrong.append(at)

    threads = [threading.Thread(target=work, args=(at,)) for at in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_threads_first_use_of_the_gpu_may_be_a_launch() -> None:
    kernel = gemmgen.compile(TILED)
    a, b, c = integers(20, 40), integers(40, 17), cp.zeros((20, 17), "float32")
    d = cp.zeros_like(c)
    launch = kernel.prepare(a, b, d)
    for call in (lambda: kernel(a, b, c), launch):
        thread = threading.Thread(target=call)
        thread.start()
        thread.join()
    cp.cuda.Device().synchronize()
    same(c, a.get() @ b.get())
    same(d, a.get() @ b.get())


def test_a_captured_split_sum_has_memory_of_the_graphs() -> None:
    kernel = gemmgen.compile(SPLIT)
    kept = dict(kernel._pool._streams)  # by other tests: the kernel is the process's
    a, b, c = integers(33, 100), integers(100, 17), cp.zeros((33, 17), "float32")
    with cp.cuda.Stream(non_blocking=True) as stream:
        stream.begin_capture()
        kernel(a, b, c)
        kernel(a, b, c)
        graph = stream.end_capture()
        assert kernel._pool._streams == kept
        for _ in range(3):
            c.fill(-1)
            graph.launch()
        stream.synchronize()
    same(c, a.get() @ b.get())


def test_a_prepared_launch_joins_the_current_stream_and_keeps_its_arrays() -> None:
    kernel = gemmgen.compile(SPLIT)
    a, b = integers(33, 100), integers(100, 17)
    want = a.get() @ b.get()
    launch = kernel.prepare(a, b)
    del a, b
    cp.get_default_memory_pool().free_all_blocks()
    with cp.cuda.Stream(non_blocking=True) as stream:
        stream.begin_capture()
        launch()
        graph = stream.end_capture()
        graph.launch()
        stream.synchronize()
    same(launch.output, want)


def test_alpha_zero_reads_neither_input() -> None:
    kernel = gemmgen.compile(TILED)
    a, b, c = cp.full((9, 8), np.nan, "float32"), integers(8, 5), integers(9, 5)
    want = 3 * c.get()
    same(kernel(a, b, c, alpha=0, beta=3), want)


def test_a_schedules_kernel_is_loaded_once() -> None:
    assert gemmgen.compile(TILED) is gemmgen.compile(TILED)
    assert gemmgen.compile(EXAMPLES / "tiled.sched") is gemmgen.compile(EXAMPLES / "tiled.sched")


def test_an_input_of_other_dimensions_is_refused_without_an_output_too() -> None:
    kernel = gemmgen.compile(TILED)
    for shape in ((), (4,), (2, 3, 4)):
        with pytest.raises(CallError, match=r"A has shape .*, of 2 dimensions"):
            kernel(cp.ones(shape, "float32"), integers(4, 5))
