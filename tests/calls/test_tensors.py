"""PyTorch's tensors as arguments: all that belongs to the moment of the call is seen at each call.

The tensors are in host memory, which the stub of CuPy treats as a GPU's.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gemmgen.base.errors import CallError
from gemmgen.gpu import arrays, tensors

from .bench import WIDE, Bench

torch = pytest.importorskip("torch")


@pytest.fixture(params=["guards", "our own"])
def host(bench: Bench, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Bench:
    monkeypatch.setattr(tensors, "_raw_stream", lambda _: lambda gpu: 5)
    if request.param == "our own":
        monkeypatch.setattr(torch._C._dynamo.guards, "TensorGuards", None)
    found = tensors.TorchArrays(torch, "cpu")
    assert arrays._LIBRARIES == {}
    arrays._LIBRARIES["torch"] = found
    name = found.plans(1)._check.__name__
    assert name == ("of_our_own" if request.param == "our own" else "of_pytorch")
    return bench


def integers(*shape: int) -> torch.Tensor:
    return torch.randint(-4, 5, shape).float()


def refuses(call: Callable[[], object], message: str) -> None:
    for _ in range(2):
        with pytest.raises(CallError, match=message) as caught:
            call()
        assert "\n" not in str(caught.value)


def test_tensors_are_used_in_place(host: Bench) -> None:
    run, a, b, c = host.kernel, integers(9, 8), integers(8, 7), torch.zeros(12, 20)
    for _ in range(2):
        assert torch.equal(run(a, b), a @ b)
        view = c[:9, :7]
        assert run(a, b, view, alpha=2) is view and torch.equal(view, 2 * (a @ b))
        refuses(lambda: run(a.t(), b), "A has shape")
        refuses(lambda: run(a, b.double()), "B is float64; the kernel takes float32")
        refuses(lambda: run(a, b[:, ::2]), "B is not contiguous along n")
    assert not c[9:].any() and not c[:, 7:].any()
    assert {stream for stream, _, _ in host.stub.launches} == {5}


def test_a_gradient_is_never_lost(host: Bench) -> None:
    run, a, b = host.kernel, integers(16, 16), integers(16, 16).requires_grad_()
    parameter = torch.nn.Parameter(b.detach().clone())
    for weight in (b, parameter):
        for _ in range(2):
            with torch.no_grad():
                assert torch.equal(run(a, weight), a @ weight)
            with torch.inference_mode():
                assert torch.equal(run(a, weight), a @ weight)
            refuses(lambda weight=weight: run(a, weight), "B requires a gradient")
    two = torch.tensor(2.0, requires_grad=True)
    refuses(lambda: run(a, b.detach(), alpha=two), "alpha requires a gradient")


def test_a_tangent_is_never_lost(host: Bench) -> None:
    run, a, b = host.kernel, integers(16, 16), integers(16, 16)
    run(a, b)
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(a, a)
        for _ in range(2):
            assert torch.equal(run(a, b), a @ b)
            refuses(lambda: run(dual, b), "A has a tangent")


def test_a_negated_view_is_refused(host: Bench) -> None:
    run, a, b = host.kernel, integers(16, 16), integers(16, 16)
    run(a, b)
    refuses(lambda: run(torch._neg_view(a), b), r"A is negated .*; pass .resolve_neg\(\)")
    refuses(lambda: run(torch.complex(a, a).conj().imag, b), r"A is negated .*resolve_neg\(\)")
    assert torch.equal(run(torch._neg_view(a).resolve_neg(), b), -a @ b)
    refuses(lambda: run(torch.complex(a, a).conj(), b), "A is complex64; the kernel takes float32")


def test_what_has_no_memory_is_refused(host: Bench) -> None:
    run, a, b = host.kernel, integers(16, 16), integers(16, 16)
    freed = integers(16, 16)
    with torch._subclasses.FakeTensorMode() as mode:
        fake = mode.from_tensor(a)
    run(a, b)
    run(freed, b)
    freed.untyped_storage().resize_(0)
    refuses(lambda: run(a.to_sparse(), b), "A is a tensor of layout sparse_coo; pass .to_dense")
    refuses(lambda: run(a.to("meta"), b), "A is a PyTorch tensor on meta")
    refuses(lambda: run(fake, b), "A is a torch._subclasses.fake_tensor.FakeTensor, whose numbers")
    refuses(lambda: run(freed, b), "A has no memory")
    refuses(lambda: run(torch._efficientzerotensor((16, 16)), b), "A has no memory")
    with torch._subclasses.FakeTensorMode():
        refuses(lambda: run(a, b), "C can't be allocated: PyTorch is in a mode")


def test_functions_of_functions_are_refused(host: Bench) -> None:
    run, a, b, message = host.kernel, integers(16, 16), integers(16, 16), "inside torch.vmap or"
    run(a, b)
    refuses(lambda: torch.vmap(lambda x: run(x, b))(integers(3, 16, 16)), message)
    refuses(lambda: torch.func.grad(lambda x: run(x, b).sum())(a), message)
    refuses(lambda: torch.func.jvp(lambda x: run(x, b), (a,), (a,)), message)


def test_a_subclass_with_memory_of_its_own_is_taken(host: Bench) -> None:
    class Mine(torch.Tensor):
        pass

    a, b = integers(16, 16), integers(16, 16)
    for _ in range(2):
        assert torch.equal(host.kernel(a.as_subclass(Mine), b), a @ b)


def test_numbers_come_from_tensors_of_no_dimensions(host: Bench) -> None:
    run, a, b = host.kernel, integers(16, 16), integers(16, 16)
    assert torch.equal(run(a, b, alpha=torch.tensor(2.0)), 2 * (a @ b))
    assert torch.equal(run(a, b, alpha=torch.tensor(3)), 3 * (a @ b))
    refuses(lambda: run(a, b, alpha=torch.ones(1)), "alpha is a tensor of 1 dimensions")
    refuses(lambda: run(a, b, alpha=torch.tensor(1.0, device="meta")), "alpha is a tensor on meta")


@pytest.mark.parametrize("wide", [WIDE])
def test_an_allocated_output_has_rows_that_the_kernel_can_take(
    host: Bench, monkeypatch: pytest.MonkeyPatch, wide: str
) -> None:
    kept = arrays._LIBRARIES["torch"]
    run = Bench(monkeypatch, wide).kernel
    arrays._LIBRARIES["torch"] = kept
    a, b = integers(33, 20), integers(20, 45)
    found = run(a, b)
    assert found.stride() == (48, 1) and torch.equal(found, a @ b)
