"""Operators of PyTorch on a GPU: PyTorch's own checks and samples, compiled, and in graphs."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from operators import samples  # noqa: E402
from operators.functions import FUNCTIONS, TYPES  # noqa: E402

import gemmgen  # noqa: E402
import gemmgen.torch  # noqa: E402
from gemmgen.base.errors import CallError  # noqa: E402

BLOCKED = (
    "tile m=64 n=64 k=8\ncache_shared A[k, m] B[k, n]\nregister_block m=4 n=4\n"
    "vectorize A B C width=4\npad A by=4\ndouble_buffer A B\n"
)
FUSED = BLOCKED + "fuse_epilogue gelu(acc + bias[n])\n"
SPLIT = BLOCKED + "split_k parts=4\nfuse_epilogue relu(acc + bias[n])\n"
DOUBLE = (
    "dtype A=f64 B=f64 C=f64 acc=f64\ntile m=16 n=16 k=8\ncache_shared A B\n"
    "fuse_epilogue silu(alpha * acc + beta * C[m, n]) * row[m] + bias[n]\n"
)


@pytest.fixture(autouse=True)
def exact() -> None:
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.manual_seed(1)


def drawn(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(shape, device="cuda", dtype=dtype)


def test_integers_are_multiplied_call_after_call() -> None:
    text = "gemm C[m, n] = A[m, k] * B[n, k]\ndtype A=i8 B=i8 C=i32\n"
    operator = gemmgen.torch.op(text, name="gpu::integers")
    a, b = (torch.randint(-9, 10, (s, 64), device="cuda", dtype=torch.int8) for s in (96, 48))
    product = (a.double() @ b.double().t()).int()
    for alpha in (1.0, 3, -2.0):
        assert torch.equal(operator(a, b, alpha=alpha), int(alpha) * product)
    with pytest.raises(CallError, match=r"alpha = 0\.5 is not an integer"):
        operator(a, b, alpha=0.5)


def test_pytorchs_checks_and_gradients() -> None:
    operator = gemmgen.torch.op(DOUBLE, name="gpu::double")
    shapes = ((9, 6), (6, 11), (9,), (11,), (9, 11))
    given = [drawn(*shape, dtype=torch.float64).requires_grad_() for shape in shapes]
    arguments = (*given, 0.75, -1.25)
    torch.library.opcheck(operator, arguments)
    assert torch.autograd.gradcheck(operator, arguments)
    assert torch.autograd.gradgradcheck(operator, arguments)


def layer(text: str, name: str):
    operator = gemmgen.torch.op(text, name=name)

    def run(a, b, bias):
        return operator(a * 2, b, bias).sin()

    return run


def reference(activation, a, b, bias):
    return activation(a.double() * 2 @ b.double() + bias.double()).sin()


@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
@pytest.mark.parametrize("text", [FUSED, SPLIT], ids=["fused", "split"])
def test_compiles_whole_with_gradients(text: str, mode: str) -> None:
    kind = "split" if text == SPLIT else "fused"
    activation = torch.relu if text == SPLIT else torch.nn.functional.gelu
    run = torch.compile(layer(text, f"gpu::{kind}"), fullgraph=True, mode=mode)
    given = [drawn(*shape).requires_grad_() for shape in ((200, 96), (96, 132), (132,))]
    wide = [x.detach().double().requires_grad_() for x in given]
    g = drawn(200, 132)
    want = reference(activation, *wide)
    wanted = torch.autograd.grad(want, wide, g.double())
    for _ in range(4):
        found = run(*given)
        torch.testing.assert_close(found.double(), want, rtol=1e-3, atol=1e-4)
        for x, y in zip(torch.autograd.grad(found, given, g), wanted, strict=True):
            torch.testing.assert_close(x.double(), y, rtol=1e-3, atol=2e-2)


@pytest.mark.parametrize("text", [FUSED, SPLIT], ids=["fused", "split"])
def test_a_graph_captures_the_first_call(text: str) -> None:
    kind = "split" if text == SPLIT else "fused"
    operator = gemmgen.torch.op(text, name=f"gpu::{kind}")
    a, b, bias = drawn(301, 97), drawn(97, 133), drawn(133)
    operator(drawn(8, 8), drawn(8, 8), drawn(8))  # the kernel is loaded, and no other shape seen
    operator(drawn(9, 9), drawn(9, 9), drawn(9))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = operator(a, b, bias)
    for _ in range(2):
        a.normal_()
        graph.replay()
        activation = torch.relu if text == SPLIT else torch.nn.functional.gelu
        want = activation(a.double() @ b.double() + bias.double())
        torch.testing.assert_close(found.double(), want, rtol=1e-4, atol=1e-3)


def test_a_plain_call_breaks_the_graph_and_works() -> None:
    kernel = gemmgen.compile(BLOCKED)

    def run(a, b):
        return kernel(A=a + 1, B=b) * 3

    a, b = drawn(64, 32), drawn(32, 48)
    found = torch.compile(run)(a, b)
    want = ((a.double() + 1) @ b.double()) * 3
    torch.testing.assert_close(found.double(), want, rtol=1e-4, atol=1e-3)
    torch._dynamo.reset()
    with pytest.raises(torch._dynamo.exc.Unsupported):
        torch.compile(run, fullgraph=True)(a, b)


@pytest.mark.parametrize("dtype", TYPES, ids=TYPES.values())
@pytest.mark.parametrize("name", FUNCTIONS)
def test_pytorchs_samples(name: str, dtype: torch.dtype) -> None:
    count, wrong = 0, []
    for function, arguments, keywords in samples.samples(name, dtype, "cuda"):
        found = samples.check(function, name, arguments, keywords)
        wrong += [(found, [getattr(x, "shape", x) for x in arguments], keywords)] if found else []
        count += 1
    assert count and not wrong, wrong
