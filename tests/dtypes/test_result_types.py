"""The result of a call has the kind of type that its inputs have, for every element type: numbers
for arrays of ``ml_dtypes`` and PyTorch's types, bits for arrays of unsigned integers."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np
import pytest
from calls.bench import TILED, Bench, forget

import gemmgen
from gemmgen.base.errors import CallError
from gemmgen.calling.arguments import View
from gemmgen.calling.element_types import NOT_NUMPYS, output_type
from gemmgen.gpu import device, tensors
from gemmgen.ir.dtypes import DType
from gemmgen.numerics.formats import NAMES, STORAGE, held, numbers, stored

from .schedules import TYPES

ml_dtypes = pytest.importorskip("ml_dtypes")

M, N, K = 5, 16, 8
SHAPES = {"A": (M, K), "B": (K, N), "C": (M, N)}


def own(dtype: DType) -> np.dtype:
    """The type whose numbers NumPy or ``ml_dtypes`` knows."""
    return np.dtype(getattr(ml_dtypes, NAMES[dtype])) if dtype in NOT_NUMPYS else STORAGE[dtype]


def kind_of(dtype: DType, kind: str) -> np.dtype:
    return STORAGE[dtype] if kind == "bits" else own(dtype)


def drawn(shape: tuple[int, ...], dtype: DType, kind: str) -> np.ndarray:
    """-1, 0 and 1, whose sums are exact in every type."""
    values = np.random.default_rng(sum(shape)).integers(-1, 2, shape).astype(np.float32)
    return stored(values, dtype).view(kind_of(dtype, kind))


def as_numbers(array: np.ndarray, dtype: DType) -> np.ndarray:
    return numbers(array.view(STORAGE[dtype]), dtype)


@pytest.mark.parametrize("given", ("numbers", "bits"))
@pytest.mark.parametrize("types", TYPES)
def test_a_result_on_the_cpu_has_the_type_of_the_inputs(types: str, given: str) -> None:
    kernel = gemmgen.compile(TYPES[types][0] + "\n", device="cpu")
    of = {p.name: p.dtype for p in kernel.interface.tensors}
    a, b = (drawn(SHAPES[name], of[name], given) for name in "AB")
    inputs_hold_bits = given == "bits" and {of["A"], of["B"]} & set(NOT_NUMPYS)
    c = kernel(a, b)
    assert c.dtype == kind_of(of["C"], "bits" if inputs_hold_bits else "numbers")
    product = as_numbers(a, of["A"]).astype(np.float64) @ as_numbers(b, of["B"])
    expected = held(product, of["C"])
    assert np.array_equal(as_numbers(c, of["C"]), expected)
    for kind in ("numbers", "bits"):
        mine = np.zeros((M, N), kind_of(of["C"], kind))
        assert kernel(a, b, mine) is mine
        assert np.array_equal(as_numbers(mine, of["C"]), expected)


@pytest.mark.by_default("e5m2")
@pytest.mark.parametrize("dtype", NOT_NUMPYS)
def test_a_tensor_of_the_epilogue_counts(dtype: DType) -> None:
    text = f"target sm_89\ndtype C={dtype} bias={dtype}\nfuse_epilogue acc + bias[n]\n"
    kernel = gemmgen.compile(text, device="cpu")
    a, b = drawn((M, K), "f32", "bits"), drawn((K, N), "f32", "bits")
    for kind in ("numbers", "bits"):
        bias = drawn((N,), dtype, kind)
        c = kernel(a, b, bias=bias)
        assert c.dtype == kind_of(dtype, kind)
        expected = held(a @ b + as_numbers(bias, dtype), dtype)
        assert np.array_equal(as_numbers(c, dtype), expected)


@pytest.mark.by_default("bf16")
@pytest.mark.parametrize("dtype", NOT_NUMPYS)
def test_no_result_is_bits_by_surprise(dtype: DType, monkeypatch: pytest.MonkeyPatch) -> None:
    """f32 in, bf16 out: numbers, and without ``ml_dtypes`` a sentence."""
    kernel = gemmgen.compile(f"target sm_89\ndtype C={dtype}\n", device="cpu")
    a, b = drawn((M, K), "f32", "bits"), drawn((K, N), "f32", "bits")
    assert kernel(a, b).dtype == own(dtype)
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with pytest.raises(CallError, match=r"C is \w+, a type that NumPy lacks; install ml_dtypes"):
        kernel(a, b)
    bits = np.zeros((M, N), STORAGE[dtype])
    assert np.array_equal(as_numbers(kernel(a, b, bits), dtype), held(a @ b, dtype))


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    yield monkeypatch
    forget()


@pytest.mark.parametrize("given", ("numbers", "bits"))
@pytest.mark.parametrize("types", TYPES)
def test_a_result_of_cupy_has_the_type_of_the_inputs(
    types: str, given: str, cupy: pytest.MonkeyPatch
) -> None:
    cupy.setattr(device, "arch_for", lambda *_: "sm_89")
    bench = Bench(cupy, f"{TYPES[types][0]}\n{TILED}")
    cupy.setattr(bench.stub, "_gemm", lambda _: None)
    of = {p.name: p.dtype for p in bench.kernel.interface.tensors}
    a, b = (bench.stub.ndarray(of=drawn(SHAPES[name], of[name], given)) for name in "AB")
    inputs_hold_bits = given == "bits" and {of["A"], of["B"]} & set(NOT_NUMPYS)
    c = bench.kernel(a, b)
    assert c.dtype == kind_of(of["C"], "bits" if inputs_hold_bits else "numbers")  # type: ignore[attr-defined]


@pytest.mark.parametrize("dtype", NOT_NUMPYS)
def test_an_allocated_tensor_of_pytorch_has_the_named_type(dtype: DType) -> None:
    torch = pytest.importorskip("torch")
    kernel = gemmgen.compile(f"target sm_89\ndtype A={dtype} B={dtype} C={dtype}\n", device="cpu")
    (output,) = (p for p in kernel.interface.tensors if p.written)
    library = tensors.TorchArrays(torch, "cpu")
    for kind in (NAMES[dtype], STORAGE[dtype].name):
        views = {name: View(0, SHAPES[name], (SHAPES[name][1], 1), kind) for name in "AB"}
        assert output_type(output, kernel.interface, views) == kind
        tensor, _ = library.allocator((M, N), (N, 1), output, kind, 0)()
        assert str(tensor.dtype) == f"torch.{kind}"
