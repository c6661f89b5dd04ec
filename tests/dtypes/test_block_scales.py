"""Factors of blocks, as matrices and in a product; and what they do to the error of FP8."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

import gemmgen
from gemmgen.base.errors import CallError
from gemmgen.base.source import Source
from gemmgen.numerics import reference
from gemmgen.numerics.scales import factors_of, scaled
from gemmgen.pipeline import compile_source

PAGE = Path(__file__).parents[2] / "docs" / "hopper" / "fp8_blocks.md"
F32 = npt.NDArray[np.float32]
GEMM = "gemm C[m, n] = (A[m, k] * {}) * (B[k, n] * {})\n"
USUAL = GEMM.format("SA[k/128, m]", "SB[n/128, k/128]")
M, N, K = 70, 130, 300


def test_a_factor_is_that_of_its_block_in_any_storage_order() -> None:
    """Tensors are in their roles: factors of A along m and k, of B along k and n."""
    for of_a, of_b in (("SA[k/128, m]", "SB[n/128, k/128]"), ("SA[m, k/128]", "SB[k/128, n/128]")):
        problem = compile_source(Source(GEMM.format(of_a, of_b))).program.problem
        dice = np.random.default_rng(7)
        given = {"SA": dice.random((M, 3)), "SB": dice.random((3, 2))}
        a = factors_of(problem, problem.a, given, (M, K))
        b = factors_of(problem, problem.b, given, (K, N))
        assert a is not None and a.shape == (M, K) and b is not None and b.shape == (K, N)
        for m, n, k in ((0, 0, 0), (69, 129, 299), (3, 127, 127), (3, 128, 128), (69, 64, 256)):
            assert a[m, k] == given["SA"][m, k // 128]
            assert b[k, n] == given["SB"][k // 128, n // 128]


def test_a_block_may_be_longer_than_its_axis() -> None:
    problem = compile_source(
        Source(GEMM.format("SA[k/65536, m]", "SB[n/128, k/2]"))
    ).program.problem
    given = {"SA": np.arange(5.0).reshape(5, 1), "SB": np.arange(2.0).reshape(2, 1)}
    a = factors_of(problem, problem.a, given, (5, 3))
    assert a is not None and (a == np.arange(5.0)[:, None]).all() and a.shape == (5, 3)
    none = factors_of(problem, problem.a, {"SA": np.zeros((5, 0))}, (5, 0))
    assert none is not None and none.shape == (5, 0)


def test_values_are_scaled_in_their_type_and_others_stay() -> None:
    problem = compile_source(
        Source("gemm C[m, n] = A[m, k] * (B[k, n] * S[k/2, n])\n")
    ).program.problem
    values = np.ones((3, 2), np.float64)
    assert scaled(problem, problem.a, values, {}) is values
    assert factors_of(problem, problem.a, {}, (2, 3)) is None
    found = scaled(problem, problem.b, values, {"S": np.float32([[2, 3], [5, 7]])})
    assert found.dtype == np.float64 and found.tolist() == [[2, 3], [2, 3], [5, 7]]


def test_a_sum_of_slices_scales_each_interval_by_one_fused_multiply_add() -> None:
    dice = np.random.default_rng(3)
    a, b = (dice.standard_normal(shape).astype(np.float32) for shape in ((4, 20), (20, 5)))
    factors = tuple(
        np.repeat(dice.random(shape).astype(np.float32), 8, axis)[cut]
        for shape, axis, cut in (((4, 3), 1, np.s_[:, :20]), ((3, 5), 0, np.s_[:20]))
    )
    found = reference.split(a, b, 2, 8, terms=4, factors=factors)
    halves = []
    for half in (range(0, 16), range(16, 20)):
        total = np.zeros((4, 5), np.float32)
        for first in range(half.start, half.stop, 4):
            part = reference.sequential(a[:, first : first + 4], b[first : first + 4])
            factor = factors[0][:, first, None] * factors[1][first]
            exact = part.astype(np.float64) * factor + total  # 48 bits of a product, and a sum
            total = exact.astype(np.float32)
        halves.append(total)
    assert np.array_equal(found, halves[0] + halves[1])
    alone = reference.split(a, b, 1, 8, terms=8, factors=(factors[0], None))
    close = (a * factors[0]).astype(np.float64) @ b
    assert np.allclose(alone, close, rtol=1e-5, atol=1e-5)


def _stored(values: F32, scale: F32) -> F32:
    """What is left of ``values`` in e4m3 with these scales."""
    kept = (values / scale).astype(ml_dtypes.float8_e4m3fn)
    return kept.astype(np.float32) * scale


def _scales(values: F32, rows: int, columns: int) -> F32:
    """With which the largest element of each block is 448, for each element."""
    m, k = values.shape
    blocks = np.abs(values).reshape(m // rows, rows, k // columns, columns).max(axis=(1, 3))
    return (blocks / 448).repeat(rows, 0).repeat(columns, 1).astype(np.float32)


def _rms(values: npt.NDArray[np.float64]) -> float:
    return float(np.sqrt(np.mean(values**2)))


@pytest.mark.parametrize(
    ("kind", "of_a", "of_b"),
    [
        ("one for each tensor", (256, 4096), (256, 4096)),
        ("one for each row", (1, 4096), (1, 4096)),
        ("blocks of 1 x 128 and 128 x 128", (1, 128), (128, 128)),
    ],
)
def test_the_page_has_the_errors_of_scales(
    kind: str, of_a: tuple[int, int], of_b: tuple[int, int]
) -> None:
    dice = np.random.default_rng(0)
    a, b = (dice.standard_normal((256, 4096)).astype(np.float32) for _ in range(2))
    a[7, 300] = 100_000
    kept, other = _stored(a, _scales(a, *of_a)), _stored(b, _scales(b, *of_b))
    right = a.astype(np.float64) @ b.T.astype(np.float64)
    wrong = kept.astype(np.float64) @ other.T.astype(np.float64) - right
    rows, elements = np.arange(256) != 7, np.arange(4096) != 300
    products = _rms(wrong[rows]) / _rms(right[rows])
    lost = _rms((kept - a)[7, elements].astype(np.float64)) / _rms(a[7, elements].astype(float))
    line = f"| {kind} | {products:.3f} | {lost:.3f} |"
    assert line in PAGE.read_text(encoding="utf-8"), line


def test_a_call_multiplies_by_the_factors_it_is_given() -> None:
    dice = np.random.default_rng(1)
    a, b = (dice.integers(-4, 5, shape).astype(np.float32) for shape in ((M, K), (K, N)))
    powers = np.float32([0.5, 1, 2])
    of_a, of_b = dice.choice(powers, (3, M)), dice.choice(powers, (2, 3))
    kernel = gemmgen.compile(USUAL, device="cpu")
    whole = a * of_a.repeat(128, 0)[:K].T, b * of_b.repeat(128, 0)[:N].repeat(128, 1)[:, :K].T
    assert np.array_equal(kernel(A=a, B=b, SA=of_a, SB=of_b), whole[0] @ whole[1])


WRONG = {
    "SA has shape (2, 70), so 2 blocks of 128 along k, but K = 300 has 3": {"SA": (2, M)},
    "SA has shape (300, 70), so 300 blocks of 128 along k": {"SA": (K, M)},
    "SA has shape (3, 69), so M = 69, but A has shape (70, 300), so M = 70": {"SA": (3, M - 1)},
    "SB has shape (1, 3), so 1 block of 128 along n, but N = 130 has 2": {"SB": (1, 3)},
    "SB has shape (2, 2), so 2 blocks of 128 along k, but K = 300 has 3": {"SB": (2, 2)},
    "SA has shape (70,); the kernel takes SA[k/128, m], of 2 dimensions": {"SA": (M,)},
}


@pytest.mark.parametrize("said", WRONG)
def test_scales_of_another_shape_are_refused(said: str) -> None:
    kernel = gemmgen.compile(USUAL, device="cpu")
    shapes = {"A": (M, K), "B": (K, N), "SA": (3, M), "SB": (2, 3)} | WRONG[said]
    with pytest.raises(CallError) as caught:
        kernel(**{name: np.ones(shape, np.float32) for name, shape in shapes.items()})
    assert said in str(caught.value)


def test_scales_of_another_type_and_none_are_refused() -> None:
    kernel = gemmgen.compile(USUAL, device="cpu")
    shapes = {"A": (M, K), "B": (K, N), "SA": (3, M), "SB": (2, 3)}
    given = {name: np.ones(shape, np.float32) for name, shape in shapes.items()}
    with pytest.raises(CallError, match="SA is float64; the kernel takes float32"):
        kernel(**given | {"SA": np.ones((3, M))})
    del given["SB"]
    with pytest.raises(CallError, match="SB is missing"):
        kernel(**given)
