"""cublasLt's algorithms on a GPU, and what measures power there."""

import itertools

import numpy as np
import pytest

from gemmgen.gpu import cublas, cublaslt, nvml
from gemmgen.gpu.elements import elements, numbers
from gemmgen.ir.dtypes import DType

cp = pytest.importorskip("cupy")
M, N, K = 64, 128, 96
BY_ROWS, BY_COLUMNS = False, True
ALONG_K = (BY_ROWS, BY_COLUMNS, BY_ROWS)


def check(types: tuple[DType, DType, DType], orders: tuple[bool, bool, bool], fast: bool) -> None:
    """All algorithms against NumPy, on integers, which all of these types hold."""
    draw = np.random.default_rng(1)
    a, b = draw.integers(-2, 3, (M, K)), draw.integers(-2, 3, (K, N))
    stored = [
        cp.ascontiguousarray(elements(cp.asarray(x.T if by else x).astype("float64"), dtype))
        for x, dtype, by in zip((a, b, np.zeros((M, N))), types, orders, strict=True)
    ]
    matrices = [
        cublas.matrix(x, dtype, transposed=by)
        for x, dtype, by in zip(stored, types, orders, strict=True)
    ]
    calls = cublaslt.calls(*matrices, fast=fast)
    assert calls, (types, orders)
    for call in calls:
        stored[2].fill(0)
        call()
        found = numbers(stored[2], types[2]).get()
        np.testing.assert_array_equal(found.T if orders[2] else found, a @ b)


@pytest.mark.parametrize("orders", list(itertools.product((BY_ROWS, BY_COLUMNS), repeat=3)))
@pytest.mark.parametrize("types", [("bf16", "bf16", "f32"), ("f64", "f64", "f64")])
def test_every_storage_order_equals_numpy(
    types: tuple[DType, DType, DType], orders: tuple[bool, bool, bool]
) -> None:
    check(types, orders, False)


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize(
    "types", [("e4m3", "e4m3", "f32"), ("tf32", "tf32", "f32"), ("i8", "i8", "i32")]
)
def test_types_that_cublas_has_no_call_for(types: tuple[DType, DType, DType], fast: bool) -> None:
    check(types, ALONG_K, fast)


def test_power_and_clock_are_read() -> None:
    with nvml.meter(cp.cuda.runtime.getDevice()) as meter:
        if meter is None:
            pytest.skip("the driver's management library is not here")
        found = meter.read()
    assert found.power is None or 10 < found.power < 2000
    assert found.clock is None or 100 < found.clock < 4000
