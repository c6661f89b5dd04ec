"""The CPU device takes the views that the GPU takes, also of memory that NumPy doesn't own."""

import numpy as np
import pytest

import gemmgen
from gemmgen.base.errors import CallError
from gemmgen.sim.host_kernel import HostKernel


@pytest.fixture(scope="module")
def kernel() -> HostKernel:
    return gemmgen.compile("gemm C[m, n] = A[m, k] * B[k, n]\n", device="cpu")


def _lent(values: np.ndarray, pitch: int) -> np.ndarray:
    """``values`` in memory of a bytearray, rows ``pitch`` elements apart."""
    rows, cols = values.shape
    memory = bytearray(4 * rows * pitch)
    view = np.ndarray((rows, cols), np.float32, memory, strides=(4 * pitch, 4))
    view[:] = values
    return view


def test_memory_of_another_owner(kernel: HostKernel) -> None:
    rng = np.random.default_rng(1)
    a, b = rng.integers(-4, 5, (5, 6)), rng.integers(-4, 5, (6, 7))
    c = _lent(np.ones((5, 7)), 9)
    found = kernel(_lent(a, 8), _lent(b, 7), c, beta=2.0)
    assert found is c and np.array_equal(c, a @ b + 2)


def test_arrays_by_dlpack(kernel: HostKernel) -> None:
    a, b = np.arange(12, dtype=np.float32).reshape(3, 4), np.eye(4, dtype=np.float32)
    assert np.array_equal(kernel(np.from_dlpack(a)[:, :3], np.from_dlpack(b)[:3]), a[:, :3] @ b[:3])


def test_tensors_of_pytorch(kernel: HostKernel) -> None:
    torch = pytest.importorskip("torch")
    a = torch.arange(40.0).reshape(5, 8)
    found = kernel(a[:, :6].numpy(), torch.ones(6, 3).numpy())
    assert np.array_equal(found, (a[:, :6] @ torch.ones(6, 3)).numpy())


def test_output_beside_an_input_in_one_array(kernel: HostKernel) -> None:
    memory = np.arange(50, dtype=np.float32).reshape(5, 10)
    a, c = memory[:, :4], memory[:, 4:]
    want = a @ np.ones((4, 6), np.float32)
    assert np.array_equal(kernel(a, np.ones((4, 6), np.float32), c), want)
    assert np.array_equal(memory[:, :4], np.arange(50).reshape(5, 10)[:, :4])


def test_output_over_an_input_is_refused(kernel: HostKernel) -> None:
    memory = np.ones((5, 10), np.float32)
    with pytest.raises(CallError, match="C overlaps A"):
        kernel(memory[:, :4], np.ones((4, 7), np.float32), memory[:, 3:])
