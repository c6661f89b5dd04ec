from pathlib import Path

import numpy as np
import pytest

import gemmgen
from gemmgen.base.errors import CallError
from gemmgen.base.source import Source
from gemmgen.gpu.launch import Kernel
from gemmgen.numerics.formats import NAMES
from gemmgen.pipeline import compile_source

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


def test_a_gradient_is_never_lost() -> None:
    run, a, b = kernel(), integers(16, 16), integers(16, 16).requires_grad_()
    with torch.no_grad():
        assert torch.equal(run(a, b), a @ b)
    with pytest.raises(CallError, match="B requires a gradient"):
        run(a, b)
    with torch.no_grad():
        run(a, torch.nn.Parameter(b))
    with pytest.raises(CallError, match=r"alpha requires a gradient"):
        run(a, b.detach(), alpha=torch.tensor(2.0, requires_grad=True))


def test_a_tangent_is_never_lost() -> None:
    run, a, b = kernel(), integers(16, 16), integers(16, 16)
    run(a, b)
    with torch.autograd.forward_ad.dual_level():
        run(a, b)
        with pytest.raises(CallError, match="A has a tangent"):
            run(torch.autograd.forward_ad.make_dual(a, a), b)


def test_a_negated_view_is_refused() -> None:
    run, a, b = kernel(), integers(16, 16), integers(16, 16)
    run(a, b)
    with pytest.raises(CallError, match=r"A is negated when it is read, .* pass .resolve_neg\(\)"):
        run(torch._neg_view(a), b)
    imaginary = torch.complex(a, a).conj().imag
    with pytest.raises(CallError, match=r"A is (negated when it is read|not contiguous)"):
        run(imaginary, b)
    assert torch.equal(run(torch._neg_view(a).resolve_neg(), b), -a @ b)


def test_what_has_no_memory_is_refused_in_one_sentence() -> None:
    run, a, b = kernel(), integers(16, 16), integers(16, 16)
    freed = integers(16, 16)
    freed.untyped_storage().resize_(0)
    with torch._subclasses.FakeTensorMode() as mode:
        fake = mode.from_tensor(a)
    cases = {
        "layout sparse_coo; pass .to_dense": a.to_sparse(),
        "layout sparse_csr; pass .to_dense": a.to_sparse_csr(),
        "is a PyTorch tensor on meta": a.to("meta"),
        "is a torch._subclasses.fake_tensor.FakeTensor": fake,
        "has no memory": freed,
        "is complex64; the kernel takes float32": torch.complex(a, a).conj(),
    }
    for message, tensor in cases.items():
        with pytest.raises(CallError, match=message) as caught:
            run(tensor, b)
        assert "\n" not in str(caught.value)
    with pytest.raises(CallError, match=r"A is a tensor inside torch.vmap"):
        torch.vmap(lambda x: run(x, b))(integers(3, 16, 16))
    with pytest.raises(CallError, match=r"A is a tensor inside torch.vmap"):
        torch.func.grad(lambda x: run(x, b).sum())(a)


def test_a_subclass_with_memory_of_its_own_is_taken() -> None:
    class Mine(torch.Tensor):
        pass

    a, b = integers(16, 16), integers(16, 16)
    assert torch.equal(kernel()(a.as_subclass(Mine), b), a @ b)


def test_numbers_come_from_tensors_of_no_dimensions() -> None:
    run, a, b = kernel(), integers(16, 16), integers(16, 16)
    assert torch.equal(run(a, b, alpha=torch.tensor(2.0)), 2 * (a @ b))
    assert torch.equal(run(a, b, alpha=torch.tensor(3)), 3 * (a @ b))
    with pytest.raises(CallError, match=r"alpha is a tensor on cuda:0; .*: pass .item\(\)"):
        run(a, b, alpha=torch.tensor(2.0, device="cuda"))
    with pytest.raises(CallError, match="alpha is a tensor of 1 dimensions"):
        run(a, b, alpha=torch.ones(1))


def test_an_allocated_output_has_rows_that_the_kernel_can_take() -> None:
    wide = "tile m=64 n=64 k=16\ncache_shared A[k, m] B\nregister_block m=4 n=4\n"
    run = gemmgen.compile(wide + "vectorize C width=4\n")
    a, b = integers(33, 20), integers(20, 45)
    found = run(a, b)
    assert found.shape == (33, 45) and found.stride() == (48, 1) and torch.equal(found, a @ b)


@pytest.mark.parametrize("prepared", [False, True])
def test_a_split_sum_is_captured_in_a_graph_and_its_memory_freed(prepared: bool) -> None:
    run = gemmgen.compile("tile m=16 n=16 k=8\ncache_shared A B\nsplit_k parts=8\n")
    a, b, c = integers(200, 512), integers(512, 100), torch.zeros(200, 100, device="cuda")
    launch = run.prepare(a, b, c) if prepared else lambda: run(a, b, c)

    def cycle() -> int:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            launch()
            launch()
        for _ in range(3):
            a.copy_(integers(200, 512))
            c.fill_(-1)
            graph.replay()
            assert torch.equal(c, a @ b)
        del graph
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        return torch.cuda.memory_reserved()

    first = cycle()
    assert cycle() == cycle() == first
    assert not run._pool._streams
