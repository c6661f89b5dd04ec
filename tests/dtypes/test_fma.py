"""The f64 multiply-add of the references against the C library's, bit for bit."""

from __future__ import annotations

import ctypes
import ctypes.util

import numpy as np
import pytest

from gemmgen.ir.dtypes import Types
from gemmgen.numerics import reference
from gemmgen.numerics.fma import fma_f64

RNG = np.random.default_rng(0)
COUNT = 3000
DOUBLE = Types("f64", "f64", "f64", "f64")


def operands() -> dict[str, reference.F64]:
    ordinary = RNG.standard_normal((3, COUNT))
    cancelling = ordinary.copy()
    cancelling[2] = -ordinary[0] * ordinary[1] * (1 + RNG.integers(-2, 3, COUNT) * 2.0**-52)
    ties = RNG.integers(1, 2**27, (3, COUNT)).astype(np.float64)
    ties[2] *= 2.0 ** RNG.integers(-60, 60, COUNT)
    tiny = RNG.standard_normal((3, COUNT)) * 2.0**-530
    tiny[2] *= 2.0**-530
    bits = RNG.integers(0, 2**64, (3, COUNT), dtype=np.uint64).view(np.float64)
    special = np.where(RNG.random((3, COUNT)) < 0.2, 0.0, ordinary)
    special[:, ::7], special[1, ::5] = np.inf, -0.0
    return {
        "ordinary": ordinary,
        "cancelling": cancelling,
        "ties": ties,
        "tiny": tiny,
        "any bits": bits,
        "zeros and infinities": special,
    }


@pytest.mark.parametrize("kind", list(operands()))
def test_fma_rounds_once(kind: str) -> None:
    a, b, c = operands()[kind]
    fma = ctypes.CDLL(ctypes.util.find_library("m")).fma
    fma.restype, fma.argtypes = ctypes.c_double, [ctypes.c_double] * 3
    want = np.array([fma(*map(float, row)) for row in zip(a, b, c, strict=True)])
    got = fma_f64(a, b, c)
    nan = np.isnan(got) & np.isnan(want)
    assert (nan | (got.view(np.uint64) == want.view(np.uint64))).all()


def test_two_roundings_are_not_an_fma() -> None:
    a, b, c = operands()["cancelling"]
    assert (a * b + c != fma_f64(a, b, c)).any()


@pytest.mark.parametrize("types", (DOUBLE, Types("f16", "f16", "f16"), Types("bf16", "bf16")))
def test_inputs_are_what_their_types_hold(types: Types) -> None:
    for make in (reference.integers, reference.permutation, reference.normal, reference.positive):
        drawn = make(6, 5, 33, 2, types)
        for values, dtype in ((drawn.a, types.a), (drawn.b, types.b), (drawn.c, types.c)):
            assert reference.compare(
                reference.stored(values, dtype), values, dtype=dtype
            ).equal, make.__name__
            assert (reference.held(values, dtype) == values).all()


def test_integers_of_sixteen_bits_rarely_round() -> None:
    """Sums of up to 256 and 2048 are exact in bf16 and f16."""
    for types in (Types("f16", "f16", "f16"), Types("bf16", "bf16", "bf16")):
        drawn = reference.integers(40, 40, 300, 5, types)
        total = drawn.a.astype(np.float64) @ drawn.b.astype(np.float64)
        assert (reference.held(total, types.c) == total).mean() > 0.999


@pytest.mark.parametrize(
    "types", (DOUBLE, Types("f16", "f16", "f16"), Types("bf16", "bf16", "bf16"))
)
@pytest.mark.parametrize("k", (1, 64, 1000))
def test_a_right_result_is_within_both_bounds(types: Types, k: int) -> None:
    for make, positive in ((reference.normal, False), (reference.positive, True)):
        drawn = make(8, 8, k, 2, types)
        call = (drawn.a, drawn.b, drawn.c, 0.75, -1.0)
        scale = reference.magnitude(*call)
        bound = (
            reference.all_positive_bound(scale, k, types)
            if positive
            else reference.zero_mean_bound(scale, types)
        )
        want = reference.exact(*call)
        bound = reference.stored_bound(want, bound, types)
        got = reference.stored(reference.gemm(*call), types.c)
        assert reference.compare(got, want, bound, types.c).equal
        other = reference.stored(reference.gemm(*call[:3], 1.0, -1.0), types.c)
        assert not reference.compare(other, want, bound, types.c).equal
