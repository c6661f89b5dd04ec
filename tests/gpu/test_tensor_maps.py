"""Kernels that take tensor maps, launched from Python: the driver encodes them, once an address."""

from __future__ import annotations

import numpy as np
import pytest

from gemmgen.base.errors import CallError
from gemmgen.base.source import Source
from gemmgen.gpu import device, tensor_maps
from gemmgen.gpu.launch import Kernel
from gemmgen.ir.tensor_map import MapFields
from gemmgen.pipeline import compile_source

cp = pytest.importorskip("cupy")

SHAPE = """\
target          sm_90
tile            m=64 n=64 k=16
cache_shared    A[k, m] B
register_block  m=4 n=4
double_buffer   A B stages=3
async_copy      A B via=tma
"""
PLAIN = f"gemm C[m, n] = A[k, m] * B[k, n]\n{SHAPE}"
BATCHED = f"gemm C[b, m, n] = A[b, k, m] * B[k, n]\n{SHAPE}"


@pytest.fixture(autouse=True)
def tma() -> None:
    if device.capability(cp.cuda.runtime.getDevice()) < (9, 0):
        pytest.skip("TMA came with sm_90")


@pytest.fixture
def encoded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tensors whose maps are encoded, in order."""
    names: list[str] = []
    real = tensor_maps.encoded

    def noted(name: str, fields: MapFields, address: int) -> bytes:
        names.append(name)
        return real(name, fields, address)

    monkeypatch.setattr(tensor_maps, "encoded", noted)
    return names


def kernel(text: str = PLAIN) -> Kernel:
    return Kernel.of(compile_source(Source(text)))


def drawn(*shape: int, pad: int = 0, seed: int = 0):
    """Small integers; rows are a multiple of 16 bytes, and ``pad`` more elements."""
    *outer, columns = shape
    whole = (*outer, -(-columns // 4) * 4 + pad)
    values = np.random.default_rng([seed, *shape]).integers(-4, 5, whole)
    return cp.asarray(values.astype(np.float32))[..., :columns]


def check(found, a, b) -> None:
    np.testing.assert_array_equal(found.get(), np.swapaxes(a.get(), -1, -2) @ b.get())


@pytest.mark.parametrize("shape", [(64, 64, 16), (1, 1, 1), (127, 131, 257), (65, 60, 15)])
def test_results_are_exact_at_every_edge(shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    a, b = drawn(k, m, pad=4), drawn(k, n, pad=8)
    check(kernel()(a, b), a, b)


def test_addresses_extents_and_pitches(encoded: list[str]) -> None:
    """A map of the call before would be of another matrix."""
    run = kernel()
    first, second, b = drawn(40, 70), drawn(40, 70, seed=1), drawn(40, 90)
    for a in (first, second, first, second):
        check(run(a, b), a, b)
    assert encoded == ["A", "B", "A"]
    for a in (first[:20], first[:, :33], drawn(40, 70, pad=12, seed=2), first[4:24, 8:40]):
        right = b[: a.shape[0]]
        check(run(a, right), a, right)


def test_a_batch_has_a_stride_which_may_be_0() -> None:
    run = kernel(BATCHED)
    a, b = drawn(5, 40, 70), drawn(40, 90)
    check(run(a, b), a, b)
    check(run(a[::2], b), a[::2], b)
    shared = cp.broadcast_to(a[1], a.shape)
    check(run(shared, b), shared, b)
    with pytest.raises(CallError, match="holds strides from 0"):
        run(a[::-1], b)


def test_a_sum_of_nothing() -> None:
    """No map has an extent 0 or a null pointer; nothing is read."""
    run = kernel()
    a, b = cp.empty((0, 8), "float32"), cp.empty((0, 12), "float32")
    assert not run(a, b).get().any()
    a, b = drawn(40, 70), drawn(40, 90)
    a.fill(np.nan)
    assert not run(a, b, alpha=0.0).get().any()


def test_a_prepared_launch_encodes_nothing(encoded: list[str]) -> None:
    a, b = drawn(40, 70), drawn(40, 90)
    launch = kernel().prepare(a, b)
    assert encoded == ["A", "B"]
    for _ in range(3):
        launch()
    assert encoded == ["A", "B"]
    check(launch.output, a, b)


def test_a_launch_is_captured_with_its_maps() -> None:
    run, a, b = kernel(), drawn(40, 70), drawn(40, 90)
    c = run(a, b)
    c.fill(-1)
    cp.cuda.Device().synchronize()  # a non-blocking stream does not wait for the null stream's fill
    stream = cp.cuda.Stream(non_blocking=True)
    with stream:
        stream.begin_capture()
        run(a, b, C=c)
        graph = stream.end_capture()
        graph.launch(stream)
    stream.synchronize()
    check(c, a, b)


def test_what_no_map_holds_is_refused_by_name() -> None:
    run, b = kernel(), drawn(40, 90)
    wide = drawn(40, 80)
    with pytest.raises(CallError, match="tensor map needs 16-byte alignment"):
        run(wide[:, 1:70], b)
    memory = cp.zeros(40 * 70 + 2, "float32")[: 40 * 70].reshape(40, 70)
    with pytest.raises(CallError, match="lda % 4 == 0: pad the rows of A"):
        run(memory, b)
