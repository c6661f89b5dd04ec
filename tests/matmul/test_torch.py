"""PyTorch's tensors on the CPU, and launches like a GPU's, whose kernels g++ compiles."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import gemmgen
from gemmgen.base.errors import CallError
from gemmgen.sim.failures import KernelFault

from .samples import EMPTY, SHAPES

torch = pytest.importorskip("torch")

from gemmgen.functions import torch_calls, written  # noqa: E402

from .fakes import FakeKernel  # noqa: E402

BACKEND = "aot_eager"


def drawn(*shape: int, dtype: Any = torch.float64, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return torch.randint(-2, 3, shape, generator=generator).to(dtype)


@pytest.mark.parametrize("shapes", [*SHAPES, *EMPTY], ids=str)
def test_shapes_are_those_of_pytorch(shapes: tuple) -> None:
    a, b = (drawn(*shape) for shape in shapes)
    found = gemmgen.matmul(a, b)
    assert torch.equal(found, torch.matmul(a, b)) and found.is_contiguous()
    out = torch.full_like(found, 7)
    assert gemmgen.matmul(a, b, out=out) is out and torch.equal(out, found)


@pytest.mark.parametrize("dtype", ("float16", "float32", "bfloat16", "int8", "float8_e4m3fn"))
def test_the_result_has_the_type_of_the_inputs(dtype: str) -> None:
    kind = getattr(torch, dtype)
    a, b = drawn(5, 16, dtype=torch.float32).to(kind), drawn(16, 8, dtype=torch.float32).to(kind)
    found = gemmgen.matmul(a, b)
    wanted = {"int8": torch.int32, "float8_e4m3fn": torch.float32}.get(dtype, kind)
    assert found.dtype == wanted and torch.equal(found.double(), a.double() @ b.double())


@pytest.mark.parametrize(
    "run",
    [
        gemmgen.linear,
        lambda x, w, bias: gemmgen.linear(x, w, bias, epilogue="silu(acc + bias[n])"),
        lambda x, w, bias: gemmgen.matmul(x, w.t(), bias=bias, fast=True),
        lambda x, w, bias: gemmgen.matmul(x, w.t(), epilogue=("acc * bias[n]", {"bias": bias})),
    ],
)
@pytest.mark.parametrize("shape", [(4,), (3, 4), (2, 3, 4)])
def test_gradients_are_the_limits_of_differences(run: Any, shape: tuple[int, ...]) -> None:
    given = [drawn(*x).add(0.25).requires_grad_() for x in (shape, (5, 4), (5,))]
    assert torch.autograd.gradcheck(run, given)


def test_gradients_of_broadcast_batches() -> None:
    a, b = drawn(2, 1, 3, 4).requires_grad_(), drawn(3, 4, 5).requires_grad_()
    assert torch.autograd.gradcheck(gemmgen.matmul, (a, b))


def test_out_has_no_gradient() -> None:
    a, b, out = drawn(3, 4).requires_grad_(), drawn(4, 5), torch.zeros(3, 5, dtype=torch.float64)
    with pytest.raises(CallError, match=r"a requires a gradient, .* within torch.no_grad\(\)"):
        gemmgen.matmul(a, b, out=out)
    with torch.no_grad():
        assert torch.equal(gemmgen.matmul(a, b, out=out), a @ b)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("shape", [(3, 4), (2, 3, 4)])
def test_compiles_to_a_whole_graph(dynamic: bool, shape: tuple[int, ...]) -> None:
    def layer(x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        scaled = gemmgen.linear(x * 2, w, bias, epilogue="tanh(acc + bias[n])")
        return gemmgen.matmul(scaled, w, epilogue=("scale * acc", {"scale": 0.5})).sin()

    torch._dynamo.reset()
    run = torch.compile(layer, fullgraph=True, backend=BACKEND, dynamic=dynamic)
    for more in range(3):
        rows = (*shape[:-2], shape[-2] + more)
        given = [drawn(*x).requires_grad_() for x in ((*rows, 4), (5, 4), (5,))]
        x, w, bias = given
        want = (0.5 * torch.tanh(x * 2 @ w.t() + bias) @ w).sin()
        found = run(*given)
        torch.testing.assert_close(found, want)
        ones = torch.ones_like(want)
        grads = zip(
            torch.autograd.grad(found, given, ones),
            torch.autograd.grad(want, given, ones),
            strict=True,
        )
        for got, wanted in grads:
            torch.testing.assert_close(got, wanted)


def test_out_within_a_compiled_function() -> None:
    def both(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
        gemmgen.matmul(a, b, out=out)
        return out + 1

    torch._dynamo.reset()
    run = torch.compile(both, fullgraph=True, backend=BACKEND)
    a, b, out = drawn(3, 4), drawn(4, 5), torch.zeros(3, 5, dtype=torch.float64)
    assert torch.equal(run(a, b, out), a @ b + 1) and torch.equal(out, a @ b)


def test_mistakes_within_a_compiled_function_are_named() -> None:
    a, b = drawn(3, 4), drawn(4, 5)
    for call, message in (
        (lambda x: gemmgen.matmul(x, b.float()), "a is float64 and b is float32"),
        (lambda x: gemmgen.matmul(x, b.t()), "b transposed would fit"),
        (lambda x: gemmgen.matmul(x, b, epilogue="scale * acc"), "reads scale, which is not given"),
        (lambda x: gemmgen.matmul(x, b, epilogue="acc + C[m, n]"), "pass it as out="),
        (lambda x: gemmgen.matmul(x, b, epilogue="rel(acc)"), "did you mean `relu`"),
        (lambda x: gemmgen.linear(x, b), "rows of 4 and of 5 elements"),
    ):
        torch._dynamo.reset()
        with pytest.raises(Exception, match=message):
            torch.compile(call, fullgraph=True, backend=BACKEND)(a)


def test_old_values_within_a_compiled_function() -> None:
    def add(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
        text = "acc + beta * C[m, n]"
        return gemmgen.matmul(a, b, epilogue=(text, {"beta": 2.0}), out=out)

    torch._dynamo.reset()
    a, b, out = drawn(3, 4), drawn(4, 5), drawn(3, 5, seed=1)
    wanted = a @ b + 2 * out
    assert torch.equal(torch.compile(add, fullgraph=True, backend=BACKEND)(a, b, out), wanted)
    assert torch.equal(out, wanted)


def test_what_pytorch_does_to_tensors_is_seen() -> None:
    a, b = drawn(3, 4), drawn(4, 5)
    assert torch.equal(gemmgen.matmul(torch._neg_view(a), b), -a @ b)
    with torch._subclasses.FakeTensorMode() as mode:
        found = gemmgen.matmul(mode.from_tensor(a), mode.from_tensor(b))
        assert found.shape == (3, 5) and type(found).__name__ == "FakeTensor"
    assert gemmgen.matmul(a.to("meta"), b.to("meta")).device.type == "meta"
    assert torch.equal(gemmgen.linear(a, torch.nn.Parameter(b.t())), a @ b)
    with torch.inference_mode():
        assert torch.equal(gemmgen.matmul(a, b), a @ b)
    several = drawn(2, 3, 4)
    assert torch.equal(torch.vmap(lambda x: gemmgen.matmul(x, b))(several), several @ b)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(gemmgen.matmul(a, b), a @ b)


def test_mixed_tensors_are_refused() -> None:
    a, b = drawn(3, 4), drawn(4, 5)
    cases = (
        (
            (a.numpy(), b),
            r"a is a NumPy array and b is a PyTorch tensor on cpu: .*numpy.asarray\(b\)",
        ),
        (
            (a, b.numpy()),
            r'a is a PyTorch tensor on cpu and b is a NumPy .*as_tensor\(b, device="cpu"',
        ),
        ((a, b.to("meta")), "a is on cpu and b is on meta: move one to the other's device"),
        ((a, b.float()), "a is float64 and b is float32: convert one to the type of the other"),
        ((a.to_sparse(), b), r"a is a tensor of layout sparse_coo; pass .to_dense\(\)"),
        ((a.to(torch.complex64), b), "a is complex64, and the types that are multiplied are"),
    )
    for given, message in cases:
        with pytest.raises(CallError, match=message) as caught:
            gemmgen.matmul(*given)
        assert "\n" not in str(caught.value)


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is launched, if CPU tensors are as a GPU's: ``launch`` for each; operators add none."""
    calls: list[str] = []

    @contextmanager
    def device(_: object) -> Any:
        yield

    monkeypatch.setattr(torch.cuda, "current_device", lambda: None)
    monkeypatch.setattr(torch.cuda, "device", device)
    monkeypatch.setattr(torch_calls, "LAUNCHED", "cpu")
    for module in (torch_calls, written):
        monkeypatch.setattr(module, "loaded", lambda emitted, _: FakeKernel(emitted, calls))
    for name in ("_routes", "_of_calls", "_written"):
        monkeypatch.setattr(torch_calls, name, type(torch_calls._routes)(256))
    return calls


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_the_second_call_of_a_shape_only_launches(launched: list[str], shapes: tuple) -> None:
    for seed in range(3):
        a, b = (drawn(*shape, seed=seed) for shape in shapes)
        assert torch.equal(gemmgen.matmul(a, b), torch.matmul(a, b))
    assert launched == ["launch"] * 2


def test_launches_have_their_arguments_in_order(launched: list[str]) -> None:
    for seed in range(2):
        x, w, bias = (drawn(*shape, seed=seed) for shape in ((2, 3, 4), (5, 4), (5,)))
        assert torch.equal(gemmgen.linear(x, w, bias), x @ w.t() + bias)
        assert torch.equal(gemmgen.linear(x, w), x @ w.t())
        found = gemmgen.linear(x, w, bias, epilogue="relu(acc + bias[n])")
        assert torch.equal(found, torch.relu(x @ w.t() + bias))
        t = drawn(4, 5, seed=seed).t().contiguous().t()
        assert torch.equal(gemmgen.matmul(x, t, bias=bias), x @ t + bias)
    assert launched == ["launch"] * 4


def test_the_second_call_with_out_only_launches(launched: list[str]) -> None:
    for seed in range(3):
        x, w, bias, out = (drawn(*s, seed=seed) for s in ((2, 3, 4), (5, 4), (5,), (2, 3, 5)))
        assert gemmgen.linear(x, w, bias, out=out) is out
        assert torch.equal(out, x @ w.t() + bias)
        old = out.clone()
        gemmgen.matmul(x, w.t(), epilogue="relu(acc) - C[b1, m, n]", out=out)
        assert torch.equal(out, torch.relu(x @ w.t()) - old)
        narrow = torch.zeros(2, 3, 9, dtype=torch.float64)[..., :5]
        gemmgen.linear(x, w, out=narrow)
        assert torch.equal(narrow, x @ w.t())
    assert launched == ["launch"] * 6


def test_what_a_launch_with_out_does_not_see_is_checked(launched: list[str]) -> None:
    a, b = drawn(4, 4), torch.nn.Parameter(drawn(4, 4, seed=1))
    out = torch.zeros(4, 4, dtype=torch.float64)
    for _ in range(2):
        with pytest.raises(CallError, match="b requires a gradient"):
            gemmgen.matmul(a, b, out=out)
        with torch.no_grad():
            for _ in range(2):
                assert torch.equal(gemmgen.matmul(a, b, out=out), a @ b)
            with pytest.raises(CallError, match="C overlaps A"):
                gemmgen.matmul(a, b, out=a)
            wanted = -a @ b
            with pytest.raises(CallError, match="negated when it is read"):
                gemmgen.matmul(torch._neg_view(a), b, out=out)
            assert torch.equal(gemmgen.matmul(-a, b, out=out), wanted)
    assert launched == ["launch"] * 5


def test_freed_storage_is_no_launch(launched: list[str]) -> None:
    a, b, out = drawn(4, 4), drawn(4, 4, seed=1), torch.zeros(4, 4, dtype=torch.float64)
    freed = torch.zeros(4, 4, dtype=torch.float64)
    freed.untyped_storage().resize_(0)
    for _ in range(2):
        gemmgen.matmul(a, b, out=out)
    with pytest.raises((CallError, KernelFault)):  # the checked call's, or the watched run's
        gemmgen.matmul(a, b, out=freed)
    assert launched == ["launch"]


def test_a_gradient_goes_by_the_operator(launched: list[str]) -> None:
    a, b = drawn(3, 4), torch.nn.Parameter(drawn(4, 5))
    for _ in range(2):
        assert gemmgen.matmul(a, b).requires_grad
    assert not launched
    with torch.no_grad():
        for _ in range(2):
            assert torch.equal(gemmgen.matmul(a, b), a @ b)
    assert launched == ["launch"]
    assert gemmgen.matmul(a, b).requires_grad and launched == ["launch"]


def test_state_of_the_moment_goes_by_the_operator(launched: list[str]) -> None:
    a, b = drawn(3, 4), drawn(4, 5)
    for _ in range(2):
        gemmgen.matmul(a, b)
    assert len(launched) == 1
    assert torch.equal(gemmgen.matmul(torch._neg_view(a), b), -a @ b)
    with torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True):
        assert type(gemmgen.matmul(a, b)).__name__ == "FakeTensor"
    assert len(launched) == 1
    with torch.inference_mode():
        for _ in range(2):
            assert torch.equal(gemmgen.matmul(a, b), a @ b)
    whole = torch.zeros(17, dtype=torch.float64)
    less_aligned = whole[1:13].view(3, 4).copy_(a)
    before = len(launched)
    assert torch.equal(gemmgen.matmul(less_aligned, b), a @ b) and len(launched) == before


def test_numbers_of_a_call_are_its_own() -> None:
    a, b = drawn(3, 4), drawn(4, 5)
    for scale in (2.0, np.float32(3), torch.tensor(4.0)):
        found = gemmgen.matmul(a, b, epilogue=("acc * scale", {"scale": scale}))
        assert torch.equal(found, (a @ b) * float(scale))


def test_strides_and_types_tell_calls_apart(launched: list[str]) -> None:
    """All of these have the same shapes, alternately."""
    for seed in range(2):
        for dtype in (torch.float64, torch.float32):
            a, b, bias = (drawn(*x, dtype=dtype, seed=seed) for x in ((8, 8), (8, 8), (16,)))
            wide = torch.zeros(8, 24, dtype=dtype)
            wide[:, :8] = a
            for left in (a, a.t().contiguous().t(), wide[:, :8]):
                for right in (b, b.t().contiguous().t()):
                    assert torch.equal(gemmgen.matmul(left, right), a @ b)
                    assert torch.equal(gemmgen.linear(left, right), a @ b.t())
                    for own in (bias[:8], bias[::2]):
                        assert torch.equal(gemmgen.matmul(left, right, bias=own), a @ b + own)
                        assert torch.equal(gemmgen.linear(left, right, own), a @ b.t() + own)
    assert launched
