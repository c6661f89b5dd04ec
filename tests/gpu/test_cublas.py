import itertools

import numpy as np
import pytest

from gemmgen.gpu import cublas
from gemmgen.gpu.cublas_calls import run_cublas

from . import kernels

cp = pytest.importorskip("cupy")
FLAGS = list(itertools.product((False, True), repeat=3))


def stored(values: np.ndarray, transposed: bool, pad: int) -> "cp.ndarray":
    """``values`` in device memory, by rows or by columns, ``pad`` elements between them."""
    laid = values.T if transposed else values
    buffer = cp.full((laid.shape[0], laid.shape[1] + pad), np.nan, "float32")
    buffer[:, : laid.shape[1]] = cp.asarray(laid.astype(np.float32))
    return buffer[:, : laid.shape[1]]


@pytest.mark.parametrize("pad", [0, 5])
@pytest.mark.parametrize("flags", FLAGS)
def test_every_storage_order_equals_numpy(flags: tuple[bool, bool, bool], pad: int) -> None:
    draw = np.random.default_rng(1)
    a, b, c = (draw.integers(-4, 5, shape) for shape in ((37, 29), (29, 53), (37, 53)))
    want = 2 * a @ b - 3 * c
    arrays = [stored(one, flag, pad) for one, flag in zip((a, b, c), flags, strict=True)]
    matrices = [cublas.matrix(x, transposed=f) for x, f in zip(arrays, flags, strict=True)]
    cublas.gemm(*matrices, alpha=2, beta=-3)()
    found = arrays[2].get()
    np.testing.assert_array_equal(found.T if flags[2] else found, want)


def test_no_tf32_is_used() -> None:
    """TF32 keeps 10 bits of a mantissa; 1 + 2^-20 must come through."""
    a = cp.full((256, 256), 1 + 2.0**-20, "float32")
    b, c = cp.eye(256, dtype="float32"), cp.empty((256, 256), "float32")
    cublas.gemm(*(cublas.matrix(x) for x in (a, b, c)))()
    assert (c == a).all()


def test_batches() -> None:
    draw = np.random.default_rng(2)
    a, b = (cp.asarray(draw.integers(-4, 5, (3, 8, 8)).astype("float32")) for _ in range(2))
    c = cp.empty((3, 8, 8), "float32")
    cublas.gemm(*(cublas.matrix(x) for x in (a, b, c)), batch=3)()
    np.testing.assert_array_equal(c.get(), a.get() @ b.get())


@pytest.mark.parametrize(("m", "n", "k"), [(5, 7, 0), (0, 7, 3), (1, 1, 1)])
def test_empty_and_tiny_products(m: int, n: int, k: int) -> None:
    a, b, c = (cp.ones(shape, "float32") for shape in ((m, k), (k, n), (m, n)))
    cublas.gemm(*(cublas.matrix(x) for x in (a, b, c)), beta=2)()
    assert (c == k + 2).all()


def test_a_packed_call_keeps_its_arrays() -> None:
    """Their memory would be handed to the next array of their size."""
    interface = kernels.interface(*kernels.PLAIN["tiled"])
    arrays = {name: cp.ones((64, 64), "float32") for name in "ABC"}
    call, c = run_cublas(interface, arrays), arrays["C"]
    del arrays
    others = [cp.full((64, 64), np.nan, "float32") for _ in range(8)]
    call()
    assert (c == 64).all() and all(cp.isnan(other).all() for other in others)
