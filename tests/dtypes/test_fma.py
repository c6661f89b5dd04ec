"""The f64 multiply-add of the references against the C library's, bit for bit."""

from __future__ import annotations

import ctypes
import ctypes.util

import numpy as np
import pytest

from gemmgen.ir.dtypes import Types
from gemmgen.numerics.drawing import draw, largest_count
from gemmgen.numerics.fma import fma_f64
from gemmgen.numerics.formats import F64, computing, held, stored
from gemmgen.numerics.reference import compare

RNG = np.random.default_rng(0)
COUNT = 3000
DOUBLE = Types("f64", "f64", "f64", "f64")


def operands() -> dict[str, F64]:
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
def test_integers_are_what_their_types_hold(types: Types) -> None:
    number, count = computing(types.acc), largest_count(33, types)
    for kind, dtype in (("odd", types.a), ("even", types.b), ("odd", types.c)):
        values = draw(kind, (6, 33), 2, number, count)
        assert compare(stored(values, dtype), values, dtype=dtype).equal, kind
        assert (held(values, dtype) == values).all()


def test_integers_of_sixteen_bits_rarely_round() -> None:
    """Sums of up to 256 and 2048 are exact in bf16 and f16."""
    for types in (Types("f16", "f16", "f16"), Types("bf16", "bf16", "bf16")):
        count = largest_count(300, types)
        a, b = (draw(kind, (300, 40), 5, np.float32, count) for kind in ("odd", "even"))
        total = a.T.astype(np.float64) @ b.astype(np.float64)
        assert (held(total, types.c) == total).mean() > 0.999
