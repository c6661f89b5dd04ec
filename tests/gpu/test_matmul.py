"""``gemmgen.matmul`` and ``linear`` on a GPU, against float64 and in all that PyTorch does."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gemmgen
from gemmgen.functions import torch_calls

cp = pytest.importorskip("cupy")
torch = pytest.importorskip("torch")

UNIT = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
TYPES = tuple(UNIT)
SHAPES = (
    ((256, 512), (512, 384)),
    ((1000, 72), (72, 136)),
    ((37, 41), (41, 43)),
    ((1, 4096), (4096, 1000)),
    ((4096,), (4096, 1000)),
    ((1000, 512), (512,)),
    ((8, 128, 256), (256, 512)),
    ((4, 12, 128, 64), (4, 12, 64, 128)),
    ((4, 1, 64, 128), (3, 128, 64)),
    ((128, 0), (0, 64)),
    ((0, 128), (128, 64)),
)


@pytest.fixture(autouse=True)
def exact() -> None:
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.manual_seed(1)


def drawn(*shape: int, dtype: Any = torch.float32) -> torch.Tensor:
    return torch.randn(shape, device="cuda", dtype=torch.float32).to(dtype)


def check(found: torch.Tensor, a: torch.Tensor, b: torch.Tensor, more: Any = 0.0) -> None:
    """Within the bound of a sum in float32 (float64 for that) that is rounded once."""
    wanted = torch.matmul(a.double(), b.double()) + more
    size = torch.matmul(a.double().abs(), b.double().abs())
    kind = str(found.dtype).removeprefix("torch.")
    sums = UNIT["float64" if kind == "float64" else "float32"]
    bound = a.shape[-1] * sums * size + UNIT[kind] * wanted.abs() + 1e-30
    assert found.shape == wanted.shape
    assert bool(((found.double() - wanted).abs() <= bound).all())


def orders(x: torch.Tensor) -> dict[str, torch.Tensor]:
    """The same matrix, stored in other ways; rows of odd ones suit no TMA."""
    rows, columns = x.shape
    wide = torch.zeros(rows, columns + 9, device=x.device, dtype=x.dtype)
    wide[:, :columns] = x
    apart = torch.zeros(2 * rows, 2 * columns, device=x.device, dtype=x.dtype)
    apart[::2, ::2] = x
    return {
        "rows": x.contiguous(),
        "columns": x.t().contiguous().t(),
        "odd rows": wide[:, :columns],
        "apart": apart[::2, ::2],
    }


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_shapes_and_types(shapes: tuple, dtype: str) -> None:
    a, b = (drawn(*shape, dtype=getattr(torch, dtype)) for shape in shapes)
    for _ in range(2):
        found = gemmgen.matmul(a, b)
        assert found.dtype == a.dtype and found.is_contiguous()
        check(found, a, b)
    out = torch.full_like(found, 7)
    assert gemmgen.matmul(a, b, out=out) is out
    check(out, a, b)


@pytest.mark.parametrize("dtype", ("float32", "bfloat16"))
@pytest.mark.parametrize("left", ("rows", "columns", "odd rows", "apart"))
@pytest.mark.parametrize("right", ("rows", "columns", "odd rows"))
def test_any_storage_order(left: str, right: str, dtype: str) -> None:
    a, b = drawn(512, 256, dtype=getattr(torch, dtype)), drawn(
        256, 384, dtype=getattr(torch, dtype)
    )
    x, y = orders(a)[left], orders(b)[right]
    for _ in range(2):
        check(gemmgen.matmul(x, y), a, b)
    for out in orders(torch.zeros(512, 384, device="cuda", dtype=a.dtype)).values():
        if 1 not in out.stride():
            with pytest.raises(gemmgen.CallError, match="C is out"):
                gemmgen.matmul(x, y, out=out)
        else:
            check(gemmgen.matmul(x, y, out=out), a, b)


def test_rows_that_tma_does_not_take_are_explained_and_right() -> None:
    whole = drawn(512, 1031, dtype=torch.bfloat16)
    a, b = whole[:, :1024], drawn(1024, 512, dtype=torch.bfloat16)
    check(gemmgen.matmul(a, b), a, b)
    text = gemmgen.explain_matmul(a, b)
    assert "via=tma" not in text
    if torch.cuda.get_device_capability() == (9, 0):
        assert "TMA is not used: rows of a begin 2062 bytes apart" in text
        assert "via=tma" in gemmgen.explain_matmul(a.contiguous(), b)


def test_the_same_bits_as_cublas_of_whole_numbers() -> None:
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        a, b = (torch.randint(-2, 3, s, device="cuda").to(dtype) for s in ((512, 64), (64, 256)))
        assert torch.equal(gemmgen.matmul(a, b), a @ b)


def test_integers_and_fp8() -> None:
    a, b = (
        torch.randint(-9, 10, s, device="cuda").to(torch.int8) for s in ((256, 512), (512, 128))
    )
    found = gemmgen.matmul(a, b)
    assert found.dtype == torch.int32
    assert torch.equal(found.double(), a.double() @ b.double())
    if torch.cuda.get_device_capability() < (8, 9):
        return
    for kinds in ((torch.float8_e4m3fn,) * 2, (torch.float8_e4m3fn, torch.float8_e5m2)):
        a, b = (drawn(*s).to(kind) for s, kind in zip(((256, 512), (512, 128)), kinds, strict=True))
        for weight in (b, b.t().contiguous().t()):
            found = gemmgen.matmul(a, weight)
            assert found.dtype == torch.float32
            wanted = a.double() @ b.double()
            # Tensor cores keep sums of FP8 in about 14 bits: within 2^-12 of the terms' size.
            size = a.double().abs() @ b.double().abs()
            assert bool(((found.double() - wanted).abs() <= 2.0**-12 * size).all())
        out = torch.empty(256, 128, device="cuda", dtype=torch.bfloat16)
        assert gemmgen.matmul(a, b, out=out) is out


def test_linear_bias_and_epilogues() -> None:
    for dtype in (torch.float32, torch.bfloat16):
        x, w, bias = (drawn(*s, dtype=dtype) for s in ((4, 100, 256), (512, 256), (512,)))
        for _ in range(2):
            check(gemmgen.linear(x, w, bias), x, w.t(), bias.double())
            check(gemmgen.linear(x, w), x, w.t())
        found = gemmgen.linear(x, w, bias, epilogue="gelu(acc + bias[n])")
        wanted = torch.nn.functional.gelu(x.double() @ w.double().t() + bias.double())
        torch.testing.assert_close(found.double(), wanted, rtol=2e-2, atol=2e-2)
        r = drawn(4, 100, 512, dtype=dtype)
        given = {"scale": 0.5, "r": r}
        found = gemmgen.linear(x, w, epilogue=("scale * acc + r[b1, m, n]", given))
        wanted = 0.5 * (x.double() @ w.double().t()) + r.double()
        torch.testing.assert_close(found.double(), wanted, rtol=2e-2, atol=2e-2)


def test_fast_is_as_exact_as_float32() -> None:
    a, b = drawn(2048, 2048), drawn(2048, 2048)
    found = gemmgen.matmul(a, b, fast=True)
    wanted, size = a.double() @ b.double(), a.double().abs() @ b.double().abs()
    error = ((found.double() - wanted).abs() / size).max()
    assert error <= (18 * 64 + 2048 / 64 + 1) * 2.0**-24
    own = ((a @ b).double() - wanted).abs().div(size).max()
    assert error <= 4 * own
    if torch.cuda.get_device_capability() == (9, 0):
        assert "decompose" in gemmgen.explain_matmul(a, b, fast=True)


def test_f16_terms_are_within_their_bound() -> None:
    """Rows whose numbers are beyond f16's range have scales of their own."""
    rows = torch.logspace(-60, 60, 2048, 2.0, device="cuda")[:, None]
    a, b = drawn(2048, 2048) * rows, drawn(2048, 2048) * rows.flip(0).T
    found = gemmgen.matmul(a, b, fast="f16")
    wanted, size = a.double() @ b.double(), a.double().abs() @ b.double().abs()
    largest = a.double().abs().amax(1)[:, None] * b.double().abs().amax(0)
    share = (9 * 128 + 2048 / 128 + 9) * 2.0**-24
    assert ((found.double() - wanted).abs() <= share * size + 2048 * 2.0**-38 * largest).all()
    if torch.cuda.get_device_capability() == (9, 0):
        assert "(f16x3" in gemmgen.explain_matmul(a, b, fast="f16")


@pytest.mark.parametrize("dtype", ("float32", "float64", "float16", "int8"))
def test_cupy(dtype: str) -> None:
    random = cp.random.default_rng(1)
    a, b = (random.integers(-2, 3, s).astype(dtype) for s in ((300, 128), (128, 200)))
    wanted = a.get().astype(np.float64) @ b.get().astype(np.float64)
    for x in (a, cp.asfortranarray(a), cp.repeat(a, 2, axis=1)[:, ::2]):
        for _ in range(2):
            found = gemmgen.matmul(x, b)
            assert isinstance(found, cp.ndarray)
            assert found.dtype == ("int32" if dtype == "int8" else dtype)
            np.testing.assert_array_equal(found.get(), wanted)
    out = cp.empty((200, 300), found.dtype).T
    assert gemmgen.matmul(a, b, out=out) is out
    np.testing.assert_array_equal(out.get(), wanted)
    if dtype != "int8":
        weight, bias = cp.ascontiguousarray(b.T), cp.arange(200).astype(dtype)
        for _ in range(2):
            found = gemmgen.linear(a, weight, bias, epilogue="acc + bias[n] * 2")
            np.testing.assert_array_equal(found.get(), wanted + 2 * np.arange(200))
    with cp.cuda.Stream() as stream:
        found = gemmgen.matmul(a, b)
        stream.synchronize()
    np.testing.assert_array_equal(found.get(), wanted)


def test_cupy_of_ml_dtypes() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    ones = np.ones((64, 64), ml_dtypes.bfloat16)
    try:
        a = cp.asarray(ones)
    except (TypeError, ValueError):
        pytest.skip("this CuPy lacks bfloat16")
    for _ in range(2):
        found = gemmgen.matmul(a, a)
        assert found.dtype == ml_dtypes.bfloat16 and (found.get() == 64).all()


def test_mixed_arrays_are_refused() -> None:
    a, b = drawn(8, 8), drawn(8, 8)
    for given, message in (
        ((a, b.cpu()), "a is on cuda:0 and b is on cpu: move one"),
        ((a, cp.asarray(b)), "a is a PyTorch tensor on cuda:0 and b is a CuPy array"),
        ((a.cpu().numpy(), b), "a is a NumPy array and b is a PyTorch tensor on cuda:0"),
    ):
        with pytest.raises(gemmgen.CallError, match=message):
            gemmgen.matmul(*given)


@pytest.mark.parametrize("shape", [(8, 16), (2, 8, 16)])
def test_gradients_are_the_limits_of_differences(shape: tuple[int, ...]) -> None:
    given = [
        torch.randn(x, device="cuda", dtype=torch.float64, requires_grad=True)
        for x in (shape, (24, 16), (24,))
    ]
    assert torch.autograd.gradcheck(gemmgen.linear, given)

    def silu(x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return gemmgen.linear(x, w, bias, epilogue="silu(acc + bias[n])")

    assert torch.autograd.gradcheck(silu, given)


@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
def test_compiles_whole_with_gradients(mode: str) -> None:
    def layer(x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return gemmgen.linear(x * 2, w, bias, epilogue="relu(acc + bias[n])").sin()

    torch._dynamo.reset()
    run = torch.compile(layer, fullgraph=True, mode=mode)
    given = [drawn(*s).requires_grad_() for s in ((4, 64, 96), (132, 96), (132,))]
    wide = [x.detach().double().requires_grad_() for x in given]
    want = torch.relu(wide[0] * 2 @ wide[1].t() + wide[2]).sin()
    ones = torch.ones_like(want)
    wanted = torch.autograd.grad(want, wide, ones)
    for _ in range(4):
        found = run(*given)
        torch.testing.assert_close(found.double(), want, rtol=1e-3, atol=1e-3)
        for x, y in zip(torch.autograd.grad(found, given, ones.float()), wanted, strict=True):
            torch.testing.assert_close(x.double(), y, rtol=1e-3, atol=2e-2)


@pytest.mark.parametrize("seen", [True, False], ids=["seen before", "first seen"])
@pytest.mark.parametrize("dtype", ("float32", "bfloat16"))
def test_a_graph_captures_a_call(dtype: str, seen: bool) -> None:
    """A call that is first seen within the capture is chosen, compiled and loaded there."""
    kind, columns = getattr(torch, dtype), 520 if seen else 648
    a, b = drawn(600, 512, dtype=kind), drawn(512, columns, dtype=kind)
    if seen:
        gemmgen.matmul(a, b)
        gemmgen.matmul(a, b)
    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        found = gemmgen.matmul(a, b, epilogue=None if seen else "acc * 1")
    for _ in range(2):
        a.normal_()
        graph.replay()
        check(found, a, b)


def test_a_first_call_of_cupy_within_a_capture() -> None:
    a, b = cp.ones((200, 136), "float32"), cp.ones((136, 72), "float32")
    out = cp.zeros((200, 72), "float32")
    stream = cp.cuda.Stream(non_blocking=True)
    with stream:
        stream.begin_capture()
        gemmgen.matmul(a, b, out=out, epilogue="acc * 3")
        graph = stream.end_capture()
        graph.launch()
        stream.synchronize()
    assert bool((out == 3 * 136).all())


def test_the_launch_is_on_the_current_stream() -> None:
    a, b = drawn(512, 512), drawn(512, 512)
    gemmgen.matmul(a, b)
    new = drawn(512, 512)
    torch.cuda.synchronize()
    with torch.cuda.stream(torch.cuda.Stream()):
        torch.cuda._sleep(50_000_000)
        a.copy_(new)
        found = gemmgen.matmul(a, b)
        torch.cuda.current_stream().synchronize()
    check(found, new, b)


def test_calls_like_an_earlier_one_are_launched(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = drawn(64, 48), drawn(48, 72)
    gemmgen.matmul(a, b)

    def refused(*_: object) -> None:
        raise AssertionError("the operator runs")

    monkeypatch.setattr(torch_calls.Route, "__call__", refused)
    check(gemmgen.matmul(a, b), a, b)
    with pytest.raises(AssertionError, match="the operator runs"):
        gemmgen.matmul(a.requires_grad_(), b)


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
def test_another_gpu_than_the_current_one() -> None:
    a, b = drawn(64, 48).to("cuda:1"), drawn(48, 72).to("cuda:1")
    for _ in range(2):
        found = gemmgen.matmul(a, b)
        assert found.device == a.device
        check(found, a, b)
        with cp.cuda.Device(1):
            x, y = cp.ones((64, 48), "float32"), cp.ones((48, 72), "float32")
        assert bool((gemmgen.matmul(x, y) == 48).all())


def host_time(call: Callable[[], object]) -> float:
    """Microseconds of the host for a call; the GPU's queue never fills."""
    for _ in range(100):
        call()
    found: list[float] = []
    for _ in range(40):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(200):
            call()
        found.append((time.perf_counter() - start) / 200 * 1e6)
    return statistics.median(found)


@pytest.mark.timing
def test_a_call_takes_little_of_the_host() -> None:
    a, b, w, bias = (drawn(*s) for s in ((16, 8), (8, 16), (16, 8), (16,)))
    several = [drawn(m, 8) for m in range(1, 65)]
    rows = {
        "mm": host_time(lambda: torch.mm(a, b)),
        "matmul": host_time(lambda: gemmgen.matmul(a, b)),
        "linear": host_time(lambda: gemmgen.linear(a, w, bias)),
        "64 shapes": host_time(lambda: [gemmgen.matmul(x, b) for x in several]) / 64,
    }
    print(rows)
    for name in ("matmul", "linear", "64 shapes"):
        assert rows[name] <= rows["mm"] + 10, rows


@pytest.mark.timing
def test_a_first_call_takes_seconds_and_a_new_process_less(tmp_path: Path) -> None:
    """Modules are compiled in the first process, as a user's are."""
    own = {**os.environ, "PYTHONPYCACHEPREFIX": str(tmp_path)}
    own.pop("PYTHONDONTWRITEBYTECODE", None)
    code = (
        "import time, torch, gemmgen\n"
        "a = torch.randn(1536, 1000, device='cuda').bfloat16()\n"
        "b = torch.randn(1000, 776, device='cuda').bfloat16()\n"
        "torch.cuda.synchronize()\n"
        "start = time.perf_counter()\n"
        "gemmgen.matmul(a, b)\n"
        "torch.cuda.synchronize()\n"
        "print(time.perf_counter() - start)\n"
    )
    times: list[float] = []
    for _ in range(2):
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, capture_output=True, text=True, env=own)
        assert done.returncode == 0, done.stderr
        times.append(float(done.stdout))
    print(times)
    assert times[0] < 5 and times[1] < 1.5, times
