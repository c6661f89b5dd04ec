"""``gemmgen.torch.op`` on CPU tensors, whose kernels are the emitted text compiled by g++."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import gemmgen.torch  # noqa: E402
from gemmgen.base.errors import CallError, ScheduleError, UsageError  # noqa: E402
from gemmgen.torch import derivative, operator  # noqa: E402

DOUBLE = "dtype A=f64 B=f64 C=f64 acc=f64\n"


def drawn(*shape: int, dtype: Any = torch.float64) -> torch.Tensor:
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(shape, generator=generator, dtype=dtype)


def leaves(*shapes: tuple[int, ...]) -> list[torch.Tensor]:
    return [drawn(*shape).requires_grad_() for shape in shapes]


GRADIENTS: dict[str, tuple[str, tuple[tuple[int, ...], ...], tuple[float, ...]]] = {
    "number": ("gemm C[m, n] = A[m, k] * B[k, n]\n" + DOUBLE, ((3, 4), (4, 5), (3, 5)), (0.5, -2)),
    "recomputed": (
        DOUBLE + "fuse_epilogue silu(alpha * acc + beta * C[m, n]) * row[m] + bias[n]\n",
        ((3, 4), (4, 5), (3,), (5,), (3, 5)),
        (0.5, -2.0),
    ),
    "pointwise": (
        DOUBLE + "fuse_epilogue where(n <= m, scale * acc, 0) * gelu(row[m]) + other[n, m]\n",
        ((3, 4), (4, 5), (3,), (5, 3)),
        (0.5,),
    ),
    "shared": (
        "gemm Y[s, m, n] = X[s, m, k] * W[n, k]\ndtype X=f64 W=f64 Y=f64 acc=f64\n"
        "fuse_epilogue tanh(acc) + Y[s, m, n]\n",
        ((2, 3, 4), (5, 4), (2, 3, 5)),
        (),
    ),
    "crossed": (
        "gemm C[n, b, m] = A[m, b, k] * B[k, n]\n" + DOUBLE,
        ((3, 2, 4), (4, 5)),
        (),
    ),
}


@pytest.mark.parametrize("kind", GRADIENTS)
def test_gradients_are_the_limits_of_differences(kind: str) -> None:
    text, shapes, numbers = GRADIENTS[kind]
    run = gemmgen.torch.op(text, name=f"gradients::{kind}")
    assert torch.autograd.gradcheck(run, (*leaves(*shapes), *numbers))


@pytest.mark.proof
@pytest.mark.parametrize("kind", GRADIENTS)
def test_holds_what_pytorch_asks_of_operators(kind: str) -> None:
    text, shapes, numbers = GRADIENTS[kind]
    run = gemmgen.torch.op(text, name=f"gradients::{kind}")
    torch.library.opcheck(run, (*leaves(*shapes), *numbers))
    assert torch.autograd.gradgradcheck(run, (*leaves(*shapes), *numbers))


def test_only_what_is_asked_for_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    text, shapes, numbers = GRADIENTS["recomputed"]
    run = gemmgen.torch.op(text, name="gradients::recomputed")
    a, b, row, bias, c = leaves(*shapes)
    found = run(a.detach(), b.detach(), row.detach(), bias, c.detach(), *numbers)
    assert found.grad_fn.saved_tensors == ()
    launched: list[str] = []
    monkeypatch.setattr("gemmgen.torch.forward.launch", lambda *_: launched.append("a kernel"))
    found.sum().backward()
    assert torch.equal(bias.grad, torch.full((5,), 3.0, dtype=torch.float64)) and not launched


WIDE = (
    "tile m=32 n=32 k=8\ncache_shared A[k, m] B[k, n]\nregister_block m=4 n=4\n"
    "vectorize A.shared B C width=4\npad A by=4\ndouble_buffer A B\nasync_copy A B via=cp_async\n"
    "fuse_epilogue relu(acc + bias[n])\n"
)


def test_a_call_takes_what_pytorchs_functions_take() -> None:
    run = gemmgen.torch.op(WIDE, name="takes::wide")
    whole = drawn(40, 64, dtype=torch.float32)
    other = drawn(64, 48, dtype=torch.float32)
    ones = torch.ones(1, dtype=torch.float32)
    cases = {
        "as the schedule asks": (whole, other),
        "odd extents": (whole[:, :37].contiguous(), other[:37, :45].contiguous()),
        "an odd leading dimension": (whole.as_strided((20, 12), (21, 1)), other[:12]),
        "an address between": (whole.view(-1)[1:-63].view(39, 64), other),
        "transposed": (other.t(), whole[:, :48].t().contiguous().t()[:, :8].t().t()[:40]),
        "rows that are one": (ones.expand(7, 64), other),
        "a stride everywhere": (whole[:, ::2], other[::2, ::3]),
        "one row and column": (whole[:1], other[:, :1]),
        "K = 0": (whole[:, :0], other[:0]),
        "nothing": (whole[:0], other),
    }
    for what, (a, b) in cases.items():
        b = b if b.shape[0] == a.shape[1] else drawn(a.shape[1], 8, dtype=torch.float32)
        bias = drawn(b.shape[1], dtype=torch.float32)
        found = run(a, b, bias)
        wanted = torch.relu(a.double() @ b.double() + bias.double())
        torch.testing.assert_close(found.double(), wanted, rtol=1e-5, atol=1e-4, msg=what)
        assert found.is_contiguous(), what


def test_the_schedules_own_kernel_runs_where_it_can(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []

    def record(emitted: Any, tensors: Any, numbers: Any) -> None:
        ran.append(emitted.text)

    run = gemmgen.torch.op(WIDE, name="takes::wide")
    monkeypatch.setattr("gemmgen.torch.forward.launch", record)
    bias = torch.zeros(48)
    run(torch.ones(40, 72), torch.ones(72, 48), bias)
    own = gemmgen.emit_cuda(WIDE)
    run(torch.ones(40, 72), torch.ones(72, 49)[:, :48], bias)
    assert ran[0] == own and ran[1] != own
    assert "vectorize       A.shared B.shared C width=4" in ran[1], "C's accesses stay wide"
    run(torch.ones(40, 72), torch.ones(73, 48)[1:], bias)
    assert ran[2] == own


def test_halves_go_in_and_out() -> None:
    for kind, dtype in (("f16", torch.float16), ("bf16", torch.bfloat16)):
        text = f"dtype A={kind} B={kind} C={kind}\nfuse_epilogue relu(acc)\n"
        run = gemmgen.torch.op(text, name=f"halves::{kind}")
        a, b = (drawn(*shape).to(dtype).requires_grad_() for shape in ((6, 8), (8, 5)))
        wanted = torch.relu(a @ b)
        found = run(a, b)
        assert found.dtype == dtype
        torch.testing.assert_close(found, wanted)
        for x, y in zip(
            *(torch.autograd.grad(z.sum(), (a, b)) for z in (found, wanted)), strict=True
        ):
            torch.testing.assert_close(x, y)


def test_compiles_without_a_break_and_with_sizes_that_change() -> None:
    run = gemmgen.torch.op(DOUBLE + "fuse_epilogue acc + bias[n]\n", name="compiled::plain")

    def layer(a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return run(a * 2, b, bias).sin()

    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager", dynamic=True)
    for m in (3, 6):
        given = leaves((m, 4), (4, 5), (5,))
        wanted = layer(*given)
        found = compiled(*given)
        assert torch.equal(found, wanted)
        for x, y in zip(
            *(torch.autograd.grad(z.sum(), given) for z in (found, wanted)), strict=True
        ):
            torch.testing.assert_close(x, y)


def test_a_plain_kernels_call_breaks_the_graph_and_works() -> None:
    kernel = gemmgen.compile("gemm C[m, n] = A[m, k] * B[k, n]\n", device="cpu")

    def layer(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(kernel(A=(a + 1).numpy(), B=b.numpy())) * 3

    a, b = torch.ones(3, 4), torch.ones(4, 5)
    assert torch.equal(torch.compile(layer, backend="eager")(a, b), torch.full((3, 5), 24.0))
    torch._dynamo.reset()
    with pytest.raises(torch._dynamo.exc.Unsupported, match=r"torch\.op makes one"):
        torch.compile(layer, backend="eager", fullgraph=True)(a, b)


def test_calls_that_mean_nothing_are_refused() -> None:
    run = gemmgen.torch.op("gemm C[m, n] = A[m, k] * B[k, n]\n", name="refused::plain")
    a, b = torch.ones(3, 4), torch.ones(4, 5)
    for given, why in (
        ((a, b[:3]), r"k has 3 values in B\[k, n\], but 4 in A\[m, k\]"),
        ((a[0], b), r"A\[m, k\] has 2 dimensions, not 1"),
        ((a.double(), b), "A is torch.float64; it is to be torch.float32"),
        ((a, b, None, 1.0, 0.5), "C is missing: beta is 0.5"),
        ((a, b, torch.ones(3, 4), 1.0, 0.5), r"n has 4 values in C\[m, n\]"),
    ):
        with pytest.raises(CallError, match=why):
            run(*given)
    with pytest.raises(CallError, match="k has 3 values"), torch.device("meta"):
        run(torch.ones(3, 4), torch.ones(3, 5))


def test_names_and_schedules_are_checked() -> None:
    text = "gemm C[m, n] = A[m, k] * B[k, n]\n"
    first = gemmgen.torch.op(text, name="names::one")
    assert gemmgen.torch.op(text, name="names::one") is first
    assert str(first._schema) == (
        "names::one(Tensor A, Tensor B, Tensor? C=None, float alpha=1., float beta=0.) -> Tensor"
    )
    with pytest.raises(UsageError, match="another schedule"):
        gemmgen.torch.op("tile m=32 n=32\n", name="names::one")
    with pytest.raises(UsageError, match="is like my::fused"):
        gemmgen.torch.op(text, name="one")
    with pytest.raises(UsageError, match="can't be defined"):
        gemmgen.torch.op(text, name="aten::mm")
    with pytest.raises(ScheduleError):
        gemmgen.torch.op("tile m=33 n=31\nregister_block m=2\n", name="names::wrong")
    assert "names::wrong" not in operator._defined


def test_an_operator_without_a_derivative_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(derivative.RULES, "tanh")
    run = gemmgen.torch.op("fuse_epilogue tanh(acc)\n", name="none::tanh")
    a = torch.ones(2, 2, requires_grad=True)
    found = run(a, torch.ones(2, 2))
    with pytest.raises(NotImplementedError, match="none::tanh has no backward pass: tanh has no"):
        found.sum().backward()


def test_the_comparison_of_samples_sees_a_product_left_out() -> None:
    from .samples import compare

    a, b = drawn(6, 9).float(), drawn(9, 5).float()
    exact, size = a.double() @ b.double(), a.double().abs() @ b.double().abs()
    assert compare("result", a @ b, exact, size, 13) == []
    short = a[:, 1:] @ b[1:]
    assert compare("result", short, exact, size, 13) and compare("gradient", short, exact, size, 13)
    broken = (a @ b).index_fill(0, torch.tensor([2]), torch.nan)
    assert compare("result", broken, exact, size, 13)


def test_a_tangent_is_never_lost() -> None:
    run = gemmgen.torch.op("gemm C[m, n] = A[m, k] * B[k, n]\n" + DOUBLE, name="takes::tangents")
    a, b = drawn(3, 4), drawn(4, 5)
    with torch.autograd.forward_ad.dual_level():
        assert torch.equal(run(a, b), gemmgen.matmul(a, b))
        dual = torch.autograd.forward_ad.make_dual(a, a)
        for call in (run, gemmgen.matmul):
            with pytest.raises(CallError, match="A has a tangent, which a kernel would ignore"):
                call(dual, b)
            with pytest.raises(NotImplementedError, match="forward mode AD"):  # PyTorch's own
                call(dual, b.clone().requires_grad_())
