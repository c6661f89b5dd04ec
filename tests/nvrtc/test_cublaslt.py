"""Calls of cublasLt, by a library that multiplies on the CPU what their descriptions say."""

from __future__ import annotations

import gc
import itertools
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gemmgen.gpu import cublas, cublaslt, rivals, timing
from gemmgen.gpu.cublas import Matrix
from gemmgen.ir.dtypes import DTYPES, DType

from .stub_cublaslt import StubLt
from .stub_gpu import StubGpu

M, N, K = 5, 7, 3
ORDERS = list(itertools.product((False, True), repeat=3))
KEPT: list[Any] = []


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Iterator[StubLt]:
    found = StubLt()
    memory = SimpleNamespace(data=SimpleNamespace(ptr=0x7000))
    stub = StubGpu().cupy()
    stub.cuda.get_current_stream = lambda: SimpleNamespace(ptr=0)
    stub.empty = stub.ones = lambda *_: memory
    monkeypatch.setattr(cublas, "library", lambda stem: found)
    for module in (cublaslt, rivals, timing):
        monkeypatch.setattr(module, "cupy", lambda: stub)
    kept = cublaslt._library  # pyright: ignore[reportPrivateUsage]
    kept.cache_clear()
    yield found
    kept.cache_clear()
    KEPT.clear()


def stored(values: np.ndarray, dtype: DType, by_columns: bool, pad: int = 0) -> Matrix:
    """A matrix in the CPU's memory, ``pad`` elements between its lines."""
    lines = values.T if by_columns else values
    memory = np.zeros((lines.shape[0], lines.shape[1] + pad), DTYPES[dtype].array)
    memory[:, : lines.shape[1]] = lines
    KEPT.append(memory)
    ld = memory.shape[1]
    return Matrix(memory.ctypes.data, *values.shape, ld, transposed=by_columns, dtype=dtype)


def product(
    types: tuple[DType, DType, DType], orders: tuple[bool, bool, bool] = (False, True, False)
) -> tuple[Matrix, Matrix, Matrix]:
    draw = np.random.default_rng(1)
    shapes = ((M, K), (K, N), (M, N))
    values = [draw.integers(-4, 5, shape) for shape in shapes]
    found = [stored(*x) for x in zip(values, types, orders, strict=True)]
    return found[0], found[1], found[2]


@pytest.mark.parametrize("orders", ORDERS)
@pytest.mark.parametrize("pad", [0, 2])
def test_every_storage_order_equals_numpy(
    library: StubLt, orders: tuple[bool, bool, bool], pad: int
) -> None:
    draw = np.random.default_rng(1)
    a, b = draw.integers(-4, 5, (M, K)), draw.integers(-4, 5, (K, N))
    one, two = (stored(x, "f16", by, pad) for x, by in zip((a, b), orders, strict=False))
    three = stored(np.zeros((M, N)), "f32", orders[2], pad)
    cublaslt.calls(one, two, three)[0]()
    memory = KEPT[-1][:, : M if orders[2] else N]
    np.testing.assert_array_equal(memory.T if orders[2] else memory, a @ b)


@pytest.mark.parametrize(
    ("types", "compute", "scale"),
    [
        (("f16", "f16", "f16"), 68, 0),
        (("f64", "f64", "f64"), 70, 1),
        (("tf32", "tf32", "f32"), 77, 0),
        (("i8", "i8", "i32"), 72, 10),
        (("i8", "i8", "i8"), 72, 0),
    ],
)
def test_the_types_say_what_sums_are_computed_in(
    library: StubLt, types: tuple[DType, DType, DType], compute: int, scale: int
) -> None:
    cublaslt.calls(*product(types))[0]()
    description = library.description
    assert (description["compute"], description["scale"]) == (compute, scale)
    assert 17 not in description and 25 not in description  # scales are those of bytes


@pytest.mark.parametrize("fast", [False, True])
def test_fp8_have_scales(library: StubLt, fast: bool) -> None:
    cublaslt.calls(*product(("e4m3", "e5m2", "f16")), fast=fast)
    (description,) = (found for found in library.made.values() if "compute" in found)
    assert (description[17], description[18], description[25]) == (0x7000, 0x7000, fast)


@pytest.mark.parametrize(
    "types",
    [("f32", "f32", "f32"), ("e5m2", "e5m2", "bf16"), ("f16", "bf16", "f32")],
)
def test_types_that_it_is_not_asked_for(library: StubLt, types: tuple[DType, DType, DType]) -> None:
    assert cublaslt.calls(*product(types)) == () and not library.made


def test_an_empty_product_has_no_algorithm(library: StubLt) -> None:
    a, b = Matrix(0, 4, 0, 1, dtype="f16"), Matrix(0, 0, 4, 4, dtype="f16")
    assert cublaslt.calls(a, b, Matrix(0, 4, 4, 4, dtype="f16")) == ()


def test_only_possible_proposals_are_called(library: StubLt) -> None:
    library.states = (0, 15, 0)
    for call in cublaslt.calls(*product(("f16", "f16", "f16"))):
        call()
    assert library.ran == [0, 2]
    library.heuristics = 15
    assert cublaslt.calls(*product(("f16", "f16", "f16"))) == ()


def test_heuristics_know_workspace_and_alignment(library: StubLt) -> None:
    matrices = product(("f16", "f16", "f16"))
    cublaslt.calls(*matrices)
    assert library.preference[1] == 64 << 20
    c, a, b = (library.preference[at] for at in (7, 6, 5))  # stored by rows: operands swap
    for matrix, aligned in zip(matrices, (a, b, c), strict=True):
        assert matrix.pointer % aligned == 0
        assert aligned == 256 or matrix.pointer % (2 * aligned)


@pytest.mark.proof
def test_descriptions_live_as_long_as_the_calls(library: StubLt) -> None:
    found = cublaslt.calls(*product(("f16", "f16", "f16")))
    gc.collect()
    alive = library.destroyed
    found[0]()
    del found
    gc.collect()
    assert (alive, library.destroyed) == (0, 5)


def test_the_fastest_algorithm_is_the_rival(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = StubGpu()
    for module in (rivals, timing):
        monkeypatch.setattr(module, "cupy", gpu.cupy)

    def refused() -> None:
        raise RuntimeError("cublasLtMatmul failed with status 15")

    calls = [gpu.kernel("slow", 2.0), refused, gpu.kernel("fast", 1.0), gpu.kernel("late", 1.5)]
    assert rivals.fastest(calls) is calls[2]
    assert rivals.fastest([refused, calls[0]]) is calls[0]
    assert rivals.fastest([refused]) is None and rivals.fastest([]) is None
