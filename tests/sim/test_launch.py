"""A kernel called on NumPy arrays: ``gemmgen.compile(..., device="cpu")``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import gemmgen
from gemmgen.base.errors import CallError, UsageError

EXAMPLES = Path(__file__).parents[2] / "examples"


def integers(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).integers(-4, 5, shape).astype(np.float32)


def test_c_is_allocated_or_the_callers_own() -> None:
    kernel = gemmgen.compile(EXAMPLES / "tiled.sched", device="cpu")
    a, b = integers(33, 35), integers(35, 37)
    np.testing.assert_array_equal(kernel(A=a, B=b), a @ b)
    c = integers(40, 64)
    before, mine = c.copy(), c[:33, :37]
    assert kernel(A=a, B=b, C=mine, alpha=2, beta=-1) is mine
    np.testing.assert_array_equal(mine, 2 * (a @ b) - before[:33, :37])
    assert np.array_equal(c[33:], before[33:]) and np.array_equal(c[:, 37:], before[:, 37:])


def test_parts_of_a_sum_are_added_in_memory_of_the_kernels_own() -> None:
    kernel = gemmgen.compile(EXAMPLES / "split_k.sched", device="cpu")
    a, b = integers(33, 100), integers(100, 68)
    for _ in range(2):
        np.testing.assert_array_equal(kernel(A=a, B=b), a @ b)


def test_strided_batches_are_taken_as_they_are() -> None:
    text = "gemm S[b, h, i, j] = Q[b, h, i, d] * K[b, h, j, d]\ntile i=16 j=16 d=8\n"
    both = integers(2, 17, 2, 3, 5)
    q, k = (both[:, :, part].swapaxes(1, 2) for part in range(2))
    found = gemmgen.compile(text, device="cpu")(Q=q, K=k)
    np.testing.assert_array_equal(found, np.einsum("bhid,bhjd->bhij", q, k))


def test_sixteen_bits_and_doubles_keep_their_types() -> None:
    for name, dtype in (("types/f16", np.float16), ("types/f64", np.float64)):
        kernel = gemmgen.compile(EXAMPLES / f"{name}.sched", device="cpu")
        a, b = integers(16, 24).astype(dtype), integers(24, 32).astype(dtype)
        found = kernel(A=a, B=b)
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, a @ b)


A, B = np.zeros((8, 4), np.float32), np.zeros((4, 8), np.float32)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"A": A}, "B is missing: the kernel takes A, B, C, bias"),
        ({"A": A, "B": B[:3]}, "B has shape .* so K = 3, but A has shape"),
        ({"A": A, "B": B, "beta": 1.0}, "there is no argument beta"),
        ({"A": A.tolist(), "B": B}, "a kernel on the CPU takes a NumPy array"),
        ({"A": A.astype(float), "B": B}, "A is float64; the kernel takes float32"),
        ({"A": A, "B": np.zeros((4, 16), np.float32)[:, ::2]}, "not contiguous along n"),
        ({"A": A, "B": np.zeros((4, 10), np.float32)[:, :8]}, "ldb = 10, .* needs ldb % 4 == 0"),
        ({"A": A.reshape(-1)[1:29].reshape(7, 4), "B": B}, "A begins 4 bytes past"),
    ],
)
def test_what_cannot_be_launched_with_is_a_sentence(given: dict[str, object], message: str) -> None:
    kernel = gemmgen.compile(EXAMPLES / "vectorized.sched", device="cpu")
    with pytest.raises(CallError, match=message):
        kernel(**given, bias=np.zeros(8, np.float32))


def test_a_kernel_that_reads_c_must_be_given_it() -> None:
    kernel = gemmgen.compile(EXAMPLES / "tiled.sched", device="cpu")
    with pytest.raises(CallError, match="C is missing: the kernel reads it, unless beta is 0"):
        kernel(A=A, B=B, beta=1.0)


def test_there_are_two_devices() -> None:
    with pytest.raises(UsageError, match="device='tpu': there are gpu, cpu"):
        gemmgen.compile(EXAMPLES / "tiled.sched", device="tpu")  # type: ignore[call-overload]
