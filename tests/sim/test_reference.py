"""The checker itself: its results are exact, and it rejects wrong ones."""

from __future__ import annotations

import ctypes
import ctypes.util

import numpy as np
import pytest

from gemmgen.ir.dtypes import SINGLE
from gemmgen.numerics.drawing import Kind, draw, largest_count
from gemmgen.numerics.fma import fma
from gemmgen.numerics.formats import F32, poison
from gemmgen.numerics.reference import compare, sequential

RNG = np.random.default_rng(0)
COUNT = 5000


def operands() -> dict[str, F32]:
    ordinary = RNG.standard_normal((3, COUNT)).astype(np.float32)
    cancelling = ordinary.copy()
    cancelling[2] = -ordinary[0] * ordinary[1] * (1 + RNG.integers(-2, 3, COUNT) * 2.0**-23)
    ties = RNG.integers(1, 2**12, (3, COUNT)).astype(np.float32)
    ties[2] *= np.float32(2) ** RNG.integers(-60, 60, COUNT)
    tiny = (RNG.standard_normal((3, COUNT)) * 2.0**-70).astype(np.float32)
    tiny[2] *= np.float32(2.0**-66)
    bits = RNG.integers(0, 2**32, (3, COUNT), dtype=np.uint32).view(np.float32)
    bits[np.isnan(bits)] = np.nan  # whose payload is not poison's
    return {"cancelling": cancelling, "ties": ties, "tiny": tiny, "any bits": bits}


@pytest.mark.parametrize("kind", ["cancelling", "ties", "tiny", "any bits"])
def test_fma_rounds_once(kind: str) -> None:
    a, b, c = operands()[kind]
    fmaf = ctypes.CDLL(ctypes.util.find_library("m")).fmaf
    fmaf.restype, fmaf.argtypes = ctypes.c_float, [ctypes.c_float] * 3
    want = np.array([fmaf(*map(float, row)) for row in zip(a, b, c, strict=True)], np.float32)
    assert compare(fma(a, b, c), want).text() == "equal (greatest distance 0 ulps)"


def test_two_roundings_are_not_an_fma() -> None:
    a, b, c = operands()["cancelling"]
    assert not compare(a * b + c, fma(a, b, c)).equal


def matrices(m: int, n: int, k: int, *kinds: Kind) -> tuple[F32, F32]:
    """A and B of these kinds."""
    count = largest_count(k, SINGLE)
    shapes = zip(kinds, ((m, k), (k, n)), (3, 4), strict=True)
    a, b = (draw(kind, shape, seed, np.float32, count) for kind, shape, seed in shapes)
    return a, b


def test_sequential_sums_integers_exactly() -> None:
    a, b = matrices(7, 11, 300, "odd", "even")
    assert compare(sequential(a, b), a @ b).equal


def test_a_nan_spoils_its_row_alone() -> None:
    a, b = matrices(5, 6, 7, "normal", "normal")
    a[2, 3] = np.nan
    result = sequential(a, b)
    assert np.isnan(result[2]).all() and not np.isnan(np.delete(result, 2, axis=0)).any()


def test_a_permutation_moves_columns_exactly() -> None:
    a, b = matrices(9, 8, 8, "normal", "selection")
    columns = np.argmax(b, axis=0)
    assert sorted(columns) == list(range(8))
    assert compare(sequential(a, b), a[:, columns]).equal


@pytest.mark.parametrize("shape", [(1, 1, 1), (16, 16, 16), (5, 7, 2000)])
def test_a_and_b_share_no_integer(shape: tuple[int, int, int]) -> None:
    a, b = matrices(*shape, "odd", "even")
    assert not np.isin(np.abs(a), np.abs(b)).any()
    assert a.all() and b.all()


def wrong_results() -> dict[str, tuple[F32, F32]]:
    a, b = matrices(8, 8, 8, "normal", "normal")
    right, unwritten = sequential(a, b), poison(64).reshape(8, 8)
    all_nan = np.full((8, 8), np.nan, np.float32)
    return {
        "zeros": (np.zeros_like(right), right),
        "the previous output": (b, right),
        "NaN": (all_nan, right),
        "a number where NaN is wanted": (right, all_nan),
        "arguments swapped": (sequential(b, a), right),
        "transposed": (right.T, right),
        "another shape": (right[:, :-1], right),
        "broadcast shape": (right[:1], np.repeat(right[:1], 8, axis=0)),
        "one step off": (np.nextafter(right, np.float32(np.inf)), right),
        "minus zero": (np.full((2, 2), -0.0, np.float32), np.zeros((2, 2), np.float32)),
        "another type": (right.astype(np.float64), right),
        "nothing where NaN is wanted": (unwritten, all_nan),
        "infinity": (np.full_like(right, np.inf), right),
    }


@pytest.mark.parametrize("kind", list(wrong_results()))
def test_rejects(kind: str) -> None:
    got, want = wrong_results()[kind]
    assert not compare(got, want).equal
    if kind not in ("one step off", "minus zero"):
        assert not compare(got, want, np.full(want.shape, 1e-3)).equal


def test_names_the_first_difference() -> None:
    want = np.ones((3, 4), np.float32)
    got = want.copy()
    got[1, 2] += np.float32(2.0**-22)
    result = compare(got, want)
    assert (result.index, result.differing, result.max_ulps) == ((1, 2), 1, 2)
    assert result.text().startswith(
        "wrong bits: [1, 2] is 1.000000238418579, should be 1.0; 1 wrong"
    )


@pytest.mark.parametrize(
    ("got", "want", "is_right"),
    [(np.inf, 1e5, True), (-np.inf, -1e5, True), (-np.inf, 1e5, False), (np.inf, 6e4, False)],
)
def test_infinity_is_right_for_what_a_type_cannot_hold(
    got: float, want: float, is_right: bool
) -> None:
    stored, exact = np.array([got], np.float16), np.array([want])
    assert compare(stored, exact, np.array([64.0]), "f16").equal is is_right
