"""The checker itself: what it computes is exact, and what is wrong it rejects."""

from __future__ import annotations

import ctypes
import ctypes.util

import numpy as np
import pytest

from gemmgen.numerics import reference
from gemmgen.numerics.reference import compare

RNG = np.random.default_rng(0)
COUNT = 5000


def operands() -> dict[str, reference.F32]:
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
    assert compare(reference.fma(a, b, c), want).text() == "equal (greatest distance 0 ulps)"


def test_two_roundings_are_not_an_fma() -> None:
    a, b, c = operands()["cancelling"]
    assert not compare(a * b + c, reference.fma(a, b, c)).equal


def test_sequential_sums_integers_exactly() -> None:
    drawn = reference.integers(7, 11, 300, seed=3)
    assert compare(reference.sequential(drawn.a, drawn.b), drawn.a @ drawn.b).equal


def test_beta_zero_reads_no_c() -> None:
    drawn = reference.normal(3, 4, 5, seed=0)
    nan = np.full((3, 4), np.nan, np.float32)
    want = reference.gemm(drawn.a, drawn.b, None, 0.7)
    assert compare(reference.gemm(drawn.a, drawn.b, nan, 0.7, 0.0), want).equal
    assert np.isnan(reference.gemm(drawn.a, drawn.b, nan, 0.7, 1.0)).all()


def test_a_nan_spoils_its_row_alone() -> None:
    drawn = reference.normal(5, 6, 7, seed=0)
    result = reference.gemm(reference.placed(drawn.a, 2, 3, np.nan), drawn.b, None)
    assert np.isnan(result[2]).all() and not np.isnan(np.delete(result, 2, axis=0)).any()


def test_a_permutation_moves_columns_exactly() -> None:
    drawn = reference.permutation(9, 8, 8, seed=0)
    columns = np.argmax(drawn.b, axis=0)
    assert sorted(columns) == list(range(8))
    assert compare(reference.sequential(drawn.a, drawn.b), drawn.a[:, columns]).equal


@pytest.mark.parametrize("shape", [(1, 1, 1), (16, 16, 16), (5, 7, 2000)])
def test_a_and_b_share_no_integer(shape: tuple[int, int, int]) -> None:
    drawn = reference.integers(*shape, seed=1)
    assert not np.isin(np.abs(drawn.a), np.abs(drawn.b)).any()
    assert drawn.a.all() and drawn.b.all() and drawn.c.all()


@pytest.mark.parametrize("k", [1, 64, 2000])
def test_a_right_result_is_within_both_bounds(k: int) -> None:
    for make, positive in ((reference.normal, False), (reference.positive, True)):
        drawn = make(16, 16, k, seed=2)
        call = (drawn.a, drawn.b, drawn.c, 0.7, -1.0)
        scale = reference.magnitude(*call)
        bound = (
            reference.all_positive_bound(scale, k) if positive else reference.zero_mean_bound(scale)
        )
        assert compare(reference.gemm(*call), reference.exact(*call), bound).equal
        assert not compare(np.zeros((16, 16), np.float32), reference.exact(*call), bound).equal


def test_the_zero_mean_bound_sees_a_dropped_term() -> None:
    drawn = reference.normal(16, 16, 4096, seed=2)
    got = reference.gemm(drawn.a[:, :-1], drawn.b[:-1], None)
    bound = reference.zero_mean_bound(reference.magnitude(drawn.a, drawn.b, None))
    assert not compare(got, reference.exact(drawn.a, drawn.b, None), bound).equal


def wrong_results() -> dict[str, tuple[reference.F32, reference.F32]]:
    drawn = reference.normal(8, 8, 8, seed=4)
    right = reference.gemm(drawn.a, drawn.b, None)
    poison = reference.poison(64).reshape(8, 8)
    all_nan = np.full((8, 8), np.nan, np.float32)
    return {
        "zeros": (np.zeros_like(right), right),
        "the previous output": (drawn.c, right),
        "NaN": (all_nan, right),
        "a number where NaN is wanted": (right, all_nan),
        "arguments swapped": (reference.gemm(drawn.b, drawn.a, None), right),
        "transposed": (right.T, right),
        "another shape": (right[:, :-1], right),
        "broadcast shape": (right[:1], np.repeat(right[:1], 8, axis=0)),
        "one step off": (np.nextafter(right, np.float32(np.inf)), right),
        "minus zero": (np.full((2, 2), -0.0, np.float32), np.zeros((2, 2), np.float32)),
        "another type": (right.astype(np.float64), right),
        "nothing where NaN is wanted": (poison, all_nan),
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
