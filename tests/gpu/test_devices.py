"""Two GPUs: a kernel belongs to the one that it was loaded on, an operator to none."""

from __future__ import annotations

import numpy as np
import pytest

import gemmgen
from gemmgen.base.errors import CallError
from gemmgen.gpu import device

cp = pytest.importorskip("cupy")

pytestmark = pytest.mark.skipif(
    device.missing() is not None or cp.cuda.runtime.getDeviceCount() < 2, reason="needs two GPUs"
)

TILED = "tile m=16 n=16 k=8\ncache_shared A B\n"
SCHEDULES = {
    "tiled": TILED,
    "scratch": TILED + "split_k parts=4\n",
    "dynamic shared memory": (
        "target sm_90\ntile m=128 n=128 k=64\ncache_shared A[k, m] B\nregister_block m=8 n=8\n"
    ),
}


@pytest.fixture(autouse=True)
def stays() -> object:
    """Nothing changes which GPU is current."""
    cp.cuda.Device(0).use()
    yield
    assert cp.cuda.runtime.getDevice() == 0


def integers(*shape: int) -> cp.ndarray:
    draw = np.random.default_rng(sum(shape))
    return cp.asarray(draw.integers(-4, 5, shape).astype(np.float32))


def on(gpu: int) -> tuple[cp.ndarray, cp.ndarray]:
    with cp.cuda.Device(gpu):
        return integers(133, 100), integers(100, 70)


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_kernel_is_loaded_on_each_gpu(name: str) -> None:
    text = SCHEDULES[name]
    kernels = []
    for gpu in (0, 1, 0, 1):
        with cp.cuda.Device(gpu):
            kernel, (a, b) = gemmgen.compile(text), on(gpu)
            kernels.append(kernel)
            assert kernel.device == gpu
            for _ in range(2):
                found = kernel(a, b)
                assert found.data.device_id == gpu
                np.testing.assert_array_equal(found.get(), a.get() @ b.get())
    assert kernels[0] is kernels[2] and kernels[1] is kernels[3]
    assert kernels[0] is not kernels[1]


def test_a_stream_of_the_second_gpu_is_joined() -> None:
    with cp.cuda.Device(1):
        kernel, (a, b) = gemmgen.compile(SCHEDULES["scratch"]), on(1)
        found = cp.zeros((133, 70), "float32")
        with cp.cuda.Stream(non_blocking=True) as stream:
            stream.begin_capture()
            kernel(a, b, found)
            graph = stream.end_capture()
            graph.launch()
            stream.synchronize()
        np.testing.assert_array_equal(found.get(), a.get() @ b.get())


def test_arrays_of_another_gpu_are_refused_whatever_was_called_before() -> None:
    kernel, (a, b), (a1, b1) = gemmgen.compile(TILED), on(0), on(1)
    want = a.get() @ b.get()
    for _ in range(2):
        np.testing.assert_array_equal(kernel(a, b).get(), want)
        with pytest.raises(CallError, match="A is on GPU 1, and the kernel was loaded on 0"):
            kernel(a1, b1)
        with pytest.raises(CallError, match="B is on GPU 1"):
            kernel(a, b1)


def test_a_launch_is_refused_while_another_gpu_is_current() -> None:
    kernel, (a, b) = gemmgen.compile(TILED), on(0)
    want, launch = a.get() @ b.get(), kernel.prepare(a, b)
    for start in (lambda: kernel(a, b, launch.output), launch):
        launch.output.fill(-1)
        with cp.cuda.Device(1):
            with pytest.raises(CallError, match="loaded on GPU 0, which isn't current"):
                start()
            assert cp.cuda.runtime.getDevice() == 1
        assert (launch.output.get() == -1).all()
        start()
        np.testing.assert_array_equal(launch.output.get(), want)


def test_pytorchs_current_gpu_is_the_kernels() -> None:
    torch = pytest.importorskip("torch")
    a, b = (torch.randint(-4, 5, s, device="cuda:1").float() for s in ((133, 100), (100, 70)))
    want = a.cpu() @ b.cpu()
    for name, text in SCHEDULES.items():
        with torch.cuda.device(1):
            kernel = gemmgen.compile(text)
            assert kernel.device == 1, name
            for _ in range(2):
                found = kernel(a, b)
                assert found.device == a.device and torch.equal(found.cpu(), want), name
        with pytest.raises(CallError, match="isn't current"):
            kernel(a, b)


def test_an_operator_runs_where_its_tensors_are() -> None:
    torch = pytest.importorskip("torch")
    operator = gemmgen.torch.op(SCHEDULES["scratch"], name="gpu::anywhere")
    for gpu in (1, 0, 1, 1):
        where = f"cuda:{gpu}"
        a, b = (torch.randint(-4, 5, s, device=where).float() for s in ((133, 100), (100, 70)))
        a.requires_grad_()
        for _ in range(2):
            found = operator(a, b)
            assert found.device == a.device and torch.equal(found.cpu(), a.cpu() @ b.cpu())
        (gradient,) = torch.autograd.grad(found.sum(), a)
        assert torch.equal(gradient.cpu(), b.cpu().sum(1).expand(133, 100))
        assert torch.cuda.current_device() == 0
    other = torch.ones(100, 70, device="cuda:0")
    with pytest.raises(CallError, match="tensors are on cuda:1, cuda:0"):
        operator(a, other)
