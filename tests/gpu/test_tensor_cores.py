"""Tensor cores on a GPU: every storage order, type and way of leaving, against cuBLAS and exact
integers; at a large size too."""

from __future__ import annotations

import itertools

import pytest

from gemmgen.base.source import Source
from gemmgen.pipeline import Emitted, compile_source
from gemmgen.proof import gpu as layer
from gemmgen.proof.outcome import Subject

ORDERS = tuple(itertools.product(("m, k", "k, m"), ("k, n", "n, k"), ("m, n", "n, m")))
SCHEDULES = {
    "plain": "tile m=32 n=64 k=32\ncache_shared A B\nwarp_tile m=16 n=32\ntensor_core via=wmma\n",
    "wide": (
        "tile m=64 n=128 k=32\ncache_shared A B\nwarp_tile m=32 n=64\ntensor_core via=wmma\n"
        "vectorize A.global B.global width=8\nvectorize C width=4\npad A B by=8\n"
        "double_buffer A B stages=3\ndouble_buffer A.register B.register\n"
        "async_copy A B via=cp_async\nraster group=4\n"
    ),
    "parts": (
        "tile m=64 n=64 k=32\ncache_shared A B\ntensor_core via=wmma\n"
        "vectorize A.global B.global width=8\ndouble_buffer A B\nsplit_k parts=3\n"
    ),
    "mma": (
        "tile m=64 n=128 k=64\ncache_shared A B C\nwarp_tile m=32 n=64\ntensor_core via=mma\n"
        "vectorize A.global B.global width=8\nvectorize C width=4\nswizzle A B\n"
        "double_buffer A B stages=3\ndouble_buffer A.register B.register\n"
        "async_copy A B via=cp_async\nraster group=4\n"
    ),
}
SHAPES = ((1, 1, 1), (33, 35, 17), (128, 128, 128), (127, 131, 257), (130, 264, 40), (40, 48, 0))


def emitted(name: str, order: tuple[str, str, str], types: str) -> Emitted:
    a, b, c = order
    head = f"gemm C[{c}] = A[{a}] * B[{b}]\ndtype {types}\n"
    return compile_source(Source(head + SCHEDULES[name], name))


@pytest.mark.parametrize("types", ("A=f16 B=f16 C=f16", "A=bf16 B=bf16", "A=f16 B=f16"))
@pytest.mark.parametrize("order", ORDERS, ids=lambda order: "_".join(order).replace(", ", ""))
@pytest.mark.parametrize("name", ("wide", "mma"))
def test_every_storage_order_is_right(name: str, order: tuple[str, str, str], types: str) -> None:
    outcome = layer.check(Subject(emitted(name, order, types), SHAPES))
    assert outcome.status == "passed", outcome.detail or outcome.reason


@pytest.mark.parametrize("name", SCHEDULES)
def test_every_way_is_right(name: str) -> None:
    kernel = emitted(name, ORDERS[0], "A=f16 B=f16 C=f16")
    outcome = layer.check(Subject(kernel, SHAPES))
    assert outcome.status == "passed", outcome.detail or outcome.reason


@pytest.mark.parametrize("epilogue", ("", "fuse_epilogue relu(acc + bias[n])\n"))
@pytest.mark.parametrize("name", ("wide", "mma"))
def test_long_accumulations_stay_within_the_bound(name: str, epilogue: str) -> None:
    """Accumulators of tensor cores are truncated: on positive numbers these errors add up."""
    from gemmgen.calling.launches import Case
    from gemmgen.gpu.launch import Kernel
    from gemmgen.gpu.verify_cases import verify

    head = f"gemm C[m, n] = A[m, k] * B[k, n]\ndtype A=f16 B=f16\n{SCHEDULES[name]}"
    compiled = compile_source(Source(head + epilogue, name))
    reference = layer.reference_of(compiled)
    for data in ("normal", "positive"):
        case = Case((512, 512, 16384), data)
        (outcome,) = verify(Kernel.of(compiled), [case], reference=reference)
        assert outcome.status == "passed", outcome
