"""The bound for zero-mean halves on tensor cores: wide enough for their arithmetic, and no wider
than what a fault of a kernel shows.

``numerics.truncation`` is a model of it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gemmgen.base.source import Source
from gemmgen.calling.launches import Data
from gemmgen.gpu.compare import contraction, rounding
from gemmgen.numerics.drawing import draw, largest_count
from gemmgen.numerics.formats import held
from gemmgen.numerics.truncation import (
    BYTES,
    GENERATIONS,
    Numbers,
    cut,
    exponent,
    on_tensor_cores,
)
from gemmgen.pipeline import compile_source

ELEMENTS = 1_000
"""Of C, whose worst counts."""
KERNEL = compile_source(Source("dtype A=f16 B=f16 C=f32\n"))
DEPTHS = (64, 1024, 4096)


def products(depth: int) -> Numbers:
    """The products of each element, of halves: exact in f64 and f32."""
    draw = np.random.default_rng(depth)
    a, b = (draw.standard_normal((ELEMENTS, depth), np.float32) for _ in range(2))
    return (a.astype(np.float16).astype(np.float32) * b.astype(np.float16)).astype(np.float64)


def bound(addends: Numbers) -> Numbers:
    """As ``gemmgen verify`` has it for f32 results of halves."""
    values = {name: np.empty((1, addends.shape[1])) for name in "ABC"}
    share = rounding(contraction(KERNEL.interface), values, "normal")
    return share * np.abs(addends).sum(1)


@pytest.mark.by_default("64-*", "1024-*")
@pytest.mark.parametrize("generation", GENERATIONS)
@pytest.mark.parametrize("depth", (*DEPTHS, 16384))
def test_the_arithmetic_of_tensor_cores_stays_within(depth: int, generation: str) -> None:
    addends = products(depth)
    error = np.abs(on_tensor_cores(addends, *GENERATIONS[generation]) - addends.sum(1))
    share = float((error / bound(addends)).max())
    assert share < 0.6, "these are few elements: the worst of millions is not far below the bound"
    assert depth < 1024 or share > 0.1, "the bound has nothing to do with this arithmetic"


FAULTS = {
    "a term is missing": lambda addends: addends[:, :-1],
    "a term counts twice": lambda addends: np.column_stack((addends, addends[:, -1])),
    "a fragment's row is another's": lambda addends: np.column_stack(
        (np.roll(addends[:, :16], 1, axis=0), addends[:, 16:])
    ),
    "products are rounded to f16": lambda addends: addends.astype(np.float16).astype(np.float64),
    "operands lose a bit of their mantissas": lambda addends: cut(addends, 9 - exponent(addends)),
}


@pytest.mark.by_default("64-*", "1024-*")
@pytest.mark.in_proof(share=3)
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("depth", DEPTHS)
def test_a_fault_goes_beyond(depth: int, fault: str) -> None:
    addends = products(depth)
    wrong = on_tensor_cores(FAULTS[fault](addends), *GENERATIONS["sm_90"])
    beyond = np.abs(wrong - addends.sum(1)) > bound(addends)
    assert beyond.any()


def test_sums_kept_in_f16_go_beyond() -> None:
    addends = products(1024)
    total = np.zeros(ELEMENTS, np.float16)
    for first in range(0, 1024, 16):
        total = (total + addends[:, first : first + 16].sum(1)).astype(np.float16)
    assert (np.abs(total - addends.sum(1)) > bound(addends)).any()


FEW_BITS = compile_source(Source("""\
gemm C[m, n] = A[m, k] * B[n, k]
dtype A=e4m3 B=e4m3 C=f32
target sm_90a
tile m=64 n=64 k=128
cache_shared A B
warp_tile m=64 n=64
tensor_core via=wgmma
swizzle A B
double_buffer A B
async_copy A B via=tma
""")).interface


def of_bytes(depth: int, data: Data) -> Numbers:
    """The products of each element, of e4m3: exact in f64."""
    rng = np.random.default_rng(depth)
    shape = ELEMENTS, depth
    random = rng.standard_normal if data == "normal" else rng.random
    a, b = (random(shape, np.float32) + (data == "positive") / 2 for _ in range(2))
    return held(a, "e4m3").astype(np.float64) * held(b, "e4m3")


def share_of_bytes(addends: Numbers, data: Data) -> float:
    """The worst error, as a share of the bound."""
    error = np.abs(on_tensor_cores(addends, *BYTES) - addends.sum(1))
    values = {name: np.empty((1, addends.shape[1])) for name in "ABC"}
    allowed = rounding(contraction(FEW_BITS), values, data)
    return float((error / (allowed * np.abs(addends).sum(1))).max())


@pytest.mark.by_default("1024")
@pytest.mark.parametrize("depth", (*DEPTHS, 16384))
def test_sums_of_14_bits_stay_within(depth: int) -> None:
    assert share_of_bytes(of_bytes(depth, "normal"), "normal") < 0.6
    positive = of_bytes(depth, "positive")
    assert share_of_bytes(positive, "positive") < 0.6
    assert depth < 1024 or share_of_bytes(positive, "normal") > 2, "the other bound would do"


def test_drawn_integers_are_exact_in_14_bits() -> None:
    product = contraction(FEW_BITS)
    assert product.arithmetic.fraction == 13
    for depth in (256, 4096, 16384):
        count = largest_count(depth, product.types, product.arithmetic)
        shape = 100, depth
        a, b = (draw(kind, shape, 1, np.float32, count) for kind in ("odd", "even"))
        addends = (a * b).astype(np.float64)
        assert np.array_equal(on_tensor_cores(addends, *BYTES), addends.sum(1))


@pytest.mark.parametrize("fault", [*FAULTS][:3])
def test_a_fault_of_bytes_goes_beyond(fault: str) -> None:
    addends = of_bytes(64, "normal")
    wrong = on_tensor_cores(FAULTS[fault](addends), *BYTES) - addends.sum(1)
    values = {name: np.empty((1, 64)) for name in "ABC"}
    allowed = rounding(contraction(FEW_BITS), values, "normal") * np.abs(addends).sum(1)
    assert (np.abs(wrong) > allowed).any()


PROMOTED = replace(FEW_BITS, arithmetic=replace(FEW_BITS.arithmetic, terms=128))


@pytest.mark.proof
@pytest.mark.parametrize("data", ("normal", "positive"))
def test_sums_that_are_folded_stay_within_less(data: Data) -> None:
    """And those that are not go beyond."""
    depth = 4096
    addends = of_bytes(depth, data)
    parts = [on_tensor_cores(addends[:, at : at + 128], *BYTES) for at in range(0, depth, 128)]
    total = np.zeros(len(addends), np.float32)
    for part in parts:
        total = total + part.astype(np.float32)
    values = {name: np.empty((1, depth)) for name in "ABC"}
    share = rounding(contraction(PROMOTED), values, data)
    allowed = share * np.abs(addends).sum(1)
    assert (np.abs(total - addends.sum(1)) < 0.6 * allowed).all()
    if data == "positive":
        assert share < rounding(contraction(FEW_BITS), values, data) / 20
        forgotten = np.abs(on_tensor_cores(addends, *BYTES) - addends.sum(1))
        assert (forgotten > allowed).any()
