import numpy as np
import pytest

from gemmgen.errors import CallError
from gemmgen.gpu.launch import Kernel

from . import kernels

cp = pytest.importorskip("cupy")
torch = pytest.importorskip("torch")


def kernel() -> Kernel:
    return Kernel(kernels.text("tiled"), kernels.interface(*kernels.PLAIN["tiled"]))


def integers(*shape: int) -> "torch.Tensor":
    return torch.randint(-4, 5, shape, device="cuda").float()


def test_tensors_are_used_in_place_and_c_is_a_tensor() -> None:
    a, b = integers(50, 30), integers(30, 70)
    found = kernel()(A=a, B=b)
    assert isinstance(found, torch.Tensor)
    np.testing.assert_array_equal(found.cpu().numpy(), a.cpu().numpy() @ b.cpu().numpy())
    c = torch.zeros(60, 80, device="cuda")
    assert kernel()(A=a, B=b, C=c[:50, :70]).data_ptr() == c.data_ptr()
    assert torch.equal(c[:50, :70], found) and not c[50:].any() and not c[:, 70:].any()


def test_the_launch_joins_torchs_current_stream() -> None:
    run, a, b, c = kernel(), integers(512, 512), integers(512, 512), integers(512, 512)
    run(A=a, B=b, C=c)
    new = integers(512, 512)
    torch.cuda.synchronize()
    with torch.cuda.stream(torch.cuda.Stream()) as _:
        torch.cuda._sleep(50_000_000)
        a.copy_(new)
        run(A=a, B=b, C=c)
        found = c.clone()
        torch.cuda.current_stream().synchronize()
    np.testing.assert_array_equal(found.cpu().numpy(), new.cpu().numpy() @ b.cpu().numpy())


def test_refuses_host_tensors_gradients_and_mixtures() -> None:
    a, b = integers(16, 16), integers(16, 16)
    with pytest.raises(CallError, match="A is a PyTorch tensor on cpu"):
        kernel()(A=a.cpu(), B=b)
    with pytest.raises(CallError, match="A requires a gradient"):
        kernel()(A=a.clone().requires_grad_(), B=b)
    with pytest.raises(CallError, match="B is of another library"):
        kernel()(A=a, B=cp.asarray(b))
    with pytest.raises(CallError, match="A is bfloat16; the kernel takes float32"):
        kernel()(A=a.bfloat16(), B=b)
