"""What a GEMM must compute, in NumPy: exact oracles, error bounds, inputs, and a comparison.

Matrices are A (M, K), B (K, N), C (M, N); f32 in, f32 out; axes before these two number matrices,
and broadcast.  A caller whose kernel stores another layout transposes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

F32 = npt.NDArray[np.float32]
F64 = npt.NDArray[np.float64]

UNIT = 2.0**-24
"""Unit roundoff of f32: a rounded operation's relative error is at most this."""

_POISON = 0x7FD00000
_PLACES = 0x000FFFFF
_SHARED_POISON = 0xFFFFFFFF  # what shared memory holds before a block runs on the CPU


def poison(count: int) -> F32:
    """NaNs that stand for "never written"; arithmetic hands their payload on.

    The payload is an element's place, so that poison written over poison shows too.
    """
    return (_POISON | (np.arange(count) & _PLACES)).astype(np.uint32).view(np.float32)


def is_poison(values: F32) -> npt.NDArray[np.bool_]:
    """Which of ``values`` were never written, or come from what was never written."""
    bits = np.ascontiguousarray(values).view(np.uint32)
    return (bits & ~np.uint32(_PLACES) == _POISON) | (bits == _SHARED_POISON)


def fma(a: npt.ArrayLike, b: npt.ArrayLike, c: npt.ArrayLike) -> F32:
    """``a * b + c``, rounded once to f32, element by element; the operands are f32.

    The product is exact in f64.  The sum is rounded to odd, from which rounding to f32 is as good
    as from the exact sum (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums",
    2008).
    """
    with np.errstate(all="ignore"):
        product = np.asarray(a, np.float64) * np.asarray(b, np.float64)
        addend = np.asarray(c, np.float64)
        total = np.asarray(product + addend)
        back = total - product
        error = (product - (total - back)) + (addend - back)
        bits = total.view(np.int64)
        inexact = (error != 0) & np.isfinite(error) & (bits & 1 == 0)
        away = (error > 0) == (total > 0)
        odd = np.where(inexact, bits + np.where(away, 1, -1), bits).view(np.float64)
        return odd.astype(np.float32)


def sequential(a: F32, b: F32) -> F32:
    """``acc = 0; for k: acc = fma(a[m, k], b[k, n], acc)`` for each m and n, bit for bit."""
    batches = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    acc = np.zeros((*batches, a.shape[-2], b.shape[-1]), np.float32)
    for k in range(a.shape[-1]):
        acc = fma(a[..., :, k, None], b[..., None, k, :], acc)
    return acc


def default_epilogue(acc: F32, c: F32 | None, alpha: float, beta: float) -> F32:
    """``alpha * acc + beta * C`` as kernels compute it: ``fma(beta, c, alpha * acc)``.

    ``beta == 0`` reads no C; it may then be None.
    """
    with np.errstate(all="ignore"):
        scaled = np.float32(alpha) * acc
    if beta == 0:
        return scaled
    assert c is not None
    return fma(np.float32(beta), c, scaled)


def gemm(a: F32, b: F32, c: F32 | None, alpha: float = 1.0, beta: float = 0.0) -> F32:
    """The f32 result of a kernel that sums over k in order, bit for bit."""
    return default_epilogue(sequential(a, b), c, alpha, beta)


def exact(a: F32, b: F32, c: F32 | None, alpha: float = 1.0, beta: float = 0.0) -> F64:
    """The result in f64, from the rounded inputs."""
    with np.errstate(invalid="ignore"):
        product = float(np.float32(alpha)) * (a.astype(np.float64) @ b.astype(np.float64))
        if beta == 0:
            return product
        assert c is not None
        return product + float(np.float32(beta)) * c.astype(np.float64)


def magnitude(a: F32, b: F32, c: F32 | None, alpha: float = 1.0, beta: float = 0.0) -> F64:
    """G = |alpha| |A| |B| + |beta| |C|, the scale of both error bounds."""
    return exact(np.abs(a), np.abs(b), None if c is None else np.abs(c), abs(alpha), abs(beta))


def zero_mean_bound(scale: F64) -> F64:
    """16 u G: rounding errors of zero-mean data cancel, so it holds for every K, and sees what the
    bound for all-positive data hides."""
    return 16 * UNIT * scale


def all_positive_bound(scale: F64, k: int) -> F64:
    """gamma G, gamma = n u / (1 - n u) with n = K + 2: the sum's roundings and the epilogue's two.

    Higham, "Accuracy and Stability of Numerical Algorithms", 2nd edition, equation (3.5).
    """
    roundings = (k + 2) * UNIT
    return roundings / (1 - roundings) * scale


@dataclass(frozen=True)
class Inputs:
    """A (M, K), B (K, N) and C (M, N), f32.  A and B never hold the same numbers."""

    a: F32
    b: F32
    c: F32


def integers(m: int, n: int, k: int, seed: int) -> Inputs:
    """Small non-zero integers: every order of summation gives the same bits.

    A's are odd and B's are even, so that one is never the other.
    """
    rng = np.random.default_rng([seed, 1])
    count = 4 if k * 7 * 8 <= 2**24 else 1
    assert k * (2 * count - 1) * (2 * count) <= 2**24

    def draw(rows: int, cols: int, first: int) -> F32:
        magnitudes = first + 2 * rng.integers(0, count, (rows, cols))
        return (magnitudes * rng.choice((-1, 1), (rows, cols))).astype(np.float32)

    return Inputs(draw(m, k, 1), draw(k, n, 2), draw(m, n, 1))


def permutation(m: int, n: int, k: int, seed: int) -> Inputs:
    """B has a single 1 in each column (a permutation where K = N) and A has full mantissas: the
    product is columns of A exactly, and any loss of precision on the way shows."""
    rng = np.random.default_rng([seed, 2])
    values = normal(m, n, k, seed)
    b = np.zeros((k, n), np.float32)
    if k:
        b[np.resize(rng.permutation(k), n), np.arange(n)] = 1
    return Inputs(values.a, b, values.c)


def normal(m: int, n: int, k: int, seed: int) -> Inputs:
    """Zero-mean, of unit variance."""
    rng = np.random.default_rng([seed, 3])
    shapes = ((m, k), (k, n), (m, n))
    a, b, c = (rng.standard_normal(shape).astype(np.float32) for shape in shapes)
    return Inputs(a, b, c)


def positive(m: int, n: int, k: int, seed: int) -> Inputs:
    """Uniform in (0.5, 1.5)."""
    rng = np.random.default_rng([seed, 4])
    shapes = ((m, k), (k, n), (m, n))
    a, b, c = ((rng.random(shape) + 0.5).astype(np.float32) for shape in shapes)
    return Inputs(a, b, c)


Maker = Callable[[int, int, int, int], Inputs]
"""Inputs of M, N, K and a seed: ``integers``, ``permutation``, ``normal``, ``positive``."""


def batched(
    make: Maker, m: int, n: int, k: int, a: tuple[int, ...], b: tuple[int, ...], seed: int
) -> Inputs:
    """A (*a, M, K), B (*b, K, N) and C (*both, M, N) of matrices like those of ``make``.

    ``a`` and ``b`` are the extents of the batches, 1 where all share one matrix.
    """
    both = np.broadcast_shapes(a, b)
    rows, columns, outputs = (math.prod(sizes) for sizes in (a, b, both))
    made = make(m * rows, n * columns, k, seed)
    c = made.c
    if c.shape != (m * outputs, n):
        c = make(m * outputs, n, 0, seed + 1).c
    stacked = np.moveaxis(made.b.reshape(k, *b, n), 0, -2)
    return Inputs(made.a.reshape(*a, m, k), stacked, c.reshape(*both, m, n))


def placed(values: F32, row: int, col: int, value: float) -> F32:
    """A copy of ``values`` with ``value`` (a NaN, an infinity) in one place."""
    copy = values.copy()
    copy[row, col] = value
    return copy


@dataclass(frozen=True)
class Comparison:
    """How two results compare.

    ``reason`` is None where they agree.  ``index``, ``got`` and ``want`` are those of the first
    difference, ``differing`` counts them, and ``max_ulps`` is the greatest distance of two numbers,
    in steps of f32, over all elements.
    """

    reason: str | None
    index: tuple[int, ...] = ()
    got: float = 0.0
    want: float = 0.0
    differing: int = 0
    max_ulps: int = 0

    @property
    def equal(self) -> bool:
        return self.reason is None

    def text(self) -> str:
        """One line for a person."""
        if self.reason is None:
            return f"equal (greatest distance {self.max_ulps} ulps)"
        if not self.differing:
            return self.reason
        at = ", ".join(map(str, self.index))
        return (
            f"{self.reason}: [{at}] is {self.got!r}, should be {self.want!r}; "
            f"{self.differing} wrong in all, by at most {self.max_ulps} ulps"
        )


def compare(got: F32, want: F32 | F64, bound: F64 | None = None) -> Comparison:
    """Compares bits (any NaN equals any NaN, 0 is not -0), or with ``bound`` the absolute error.

    Poison in ``got`` is never right, even where a NaN is wanted.
    """
    if got.shape != want.shape:
        return Comparison(f"wrong shape: {got.shape}, should be {want.shape}")
    if got.dtype != np.float32:
        return Comparison(f"wrong type: {got.dtype}, should be float32")
    rounded = want.astype(np.float32)
    bits = np.ascontiguousarray(got).view(np.uint32)
    unwritten = is_poison(got)
    both_nan = np.isnan(got) & np.isnan(want)
    if bound is None:
        right = bits == np.ascontiguousarray(rounded).view(np.uint32)
        reason = "wrong bits"
    else:
        with np.errstate(invalid="ignore"):
            right = (got == want) | (np.abs(got.astype(np.float64) - want) <= bound)
        reason = "error beyond the bound"
    wrong = unwritten | ~(right | both_nan)
    ulps = _greatest_distance(got, rounded)
    if not wrong.any():
        return Comparison(None, max_ulps=ulps)
    index = tuple(int(i) for i in np.argwhere(wrong)[0])
    if unwritten[index]:
        reason = "never written, or computed from what was never written"
    elif np.isnan(got[index]) != np.isnan(want[index]):
        reason = "NaN in one result alone"
    count = int(np.count_nonzero(wrong))
    return Comparison(reason, index, float(got[index]), float(want[index]), count, ulps)


def _greatest_distance(got: F32, want: F32) -> int:
    numbers = ~(np.isnan(got) | np.isnan(want))
    steps = np.abs(_ordered(got[numbers]) - _ordered(want[numbers]))
    return int(steps.max(initial=0))


def _ordered(values: F32) -> npt.NDArray[np.int64]:
    """Integers in the order of the floats, neighbours one apart; both zeros are 0."""
    bits = values.view(np.int32).astype(np.int64)
    return np.where(bits < 0, -(bits + 2**31), bits)
