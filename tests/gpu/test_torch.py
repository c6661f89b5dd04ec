from pathlib import Path

import numpy as np
import pytest

from gemmgen.errors import CallError
from gemmgen.formats import NAMES
from gemmgen.gpu.launch import Kernel
from gemmgen.pipeline import compile_source
from gemmgen.source import Source

from . import kernels

EXAMPLES = Path(__file__).parents[2] / "examples"

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


@pytest.mark.parametrize("name", ["types/f16", "types/bf16", "types/f64", "tensor_core"])
def test_tensors_of_other_types_are_taken_and_given(name: str) -> None:
    text = (EXAMPLES / f"{name}.sched").read_text()
    run = Kernel.of(compile_source(Source(text, name)))
    types = {p.name: getattr(torch, NAMES[p.dtype]) for p in run.interface.params}
    a, b = integers(56, 40).to(types["A"]), integers(40, 72).to(types["B"])
    found = run(A=a, B=b)
    assert isinstance(found, torch.Tensor) and found.dtype == types["C"]
    assert torch.equal(found.double().cpu(), a.double().cpu() @ b.double().cpu())
    c = torch.zeros(60, 80, device="cuda", dtype=types["C"])
    assert run(A=a, B=b, C=c[:56, :72]).data_ptr() == c.data_ptr()
    assert torch.equal(c[:56, :72], found) and not c[56:].any() and not c[:, 72:].any()
    with pytest.raises(CallError, match="A is float32; the kernel takes"):
        run(A=a.float(), B=b)
