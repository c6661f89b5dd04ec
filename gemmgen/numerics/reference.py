"""GEMM in NumPy: exact oracles, error bounds, inputs, and a comparison.

Matrices are A (M, K), B (K, N), C (M, N), as numbers to compute with: f64 if sums are, else f32,
which represents f16 and bf16; leading axes are batches, and broadcast.  A caller whose kernel
stores another layout transposes.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from gemmgen.base.record import record
from gemmgen.ir.dtypes import SINGLE, DType, Types
from gemmgen.numerics.fma import fma, fused
from gemmgen.numerics.formats import (
    F32,
    F64,
    STORAGE,
    TINY,
    UNIT,
    Real,
    Stored,
    bits,
    computing,
    held,
    is_nan,
    is_poison,
    numbers,
    poison,
    stored,
)

__all__ = ["F32", "F64", "Real", "fma", "is_poison", "poison"]


def sequential(a: Real, b: Real) -> Real:
    """``acc = 0; for k: acc = fma(a[m, k], b[k, n], acc)`` for each m and n, bit for bit."""
    batches = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    acc: Real = np.zeros((*batches, a.shape[-2], b.shape[-1]), a.dtype)
    for k in range(a.shape[-1]):
        acc = fused(a[..., :, k, None], b[..., None, k, :], acc)
    return acc


def split(
    a: Real, b: Real, parts: int, step: int, *, groups: int = 1, backwards: bool = False
) -> Real:
    """Split-K: the sums of ``parts`` ranges of k, each by ``sequential``, added one after another
    within each of ``groups`` of consecutive parts, and then the groups' sums.

    A range has ceil(ceil(K / step) / parts) * step elements, the last ones fewer or none.
    ``backwards`` adds the last part first.
    """
    steps = -(-a.shape[-1] // step)
    chunk = -(-steps // parts) * step
    ranges = [slice(part * chunk, (part + 1) * chunk) for part in range(parts)]
    sums = [sequential(a[..., r], b[..., r, :]) for r in (ranges[::-1] if backwards else ranges)]
    size = parts // groups
    return _in_turn([_in_turn(sums[at : at + size]) for at in range(0, parts, size)])


def lanes(a: Real, b: Real, step: int, width: int, count: int = 32) -> Real:
    """Split-K within a warp: the sums of ``count`` lanes, added by a butterfly that begins with
    lanes ``count / 2`` apart.

    K is padded with zeros to a multiple of ``step``.  Vectors of ``width`` elements along k are
    distributed cyclically to the lanes, each of which sums its own by ``sequential``.
    """
    missing = (0, -a.shape[-1] % step)
    a = np.pad(a, (*((0, 0) for _ in a.shape[:-1]), missing))
    b = np.pad(b, (*((0, 0) for _ in b.shape[:-2]), missing, (0, 0)))
    k_elements = range(a.shape[-1])
    own = [[k for k in k_elements if k // width % count == lane] for lane in range(count)]
    sums = [sequential(a[..., each], b[..., each, :]) for each in own]
    with np.errstate(all="ignore"):
        while len(sums) > 1:
            half = len(sums) // 2
            sums = [sums[i] + sums[i + half] for i in range(half)]
    return sums[0]


def _in_turn(sums: list[Real]) -> Real:
    """The first of ``sums``, and the others added to it one after another."""
    total = sums[0]
    with np.errstate(all="ignore"):
        for other in sums[1:]:
            total = total + other
    return total


def default_epilogue(acc: Real, c: Real | None, alpha: float, beta: float) -> Real:
    """``alpha * acc + beta * C`` as kernels compute it: ``fma(beta, c, alpha * acc)``.

    ``beta == 0`` reads no C; it may then be None.
    """
    number = acc.dtype.type
    with np.errstate(all="ignore"):
        scaled = number(alpha) * acc
    if beta == 0:
        return scaled
    assert c is not None
    return fused(number(beta), c, scaled)


def gemm(a: Real, b: Real, c: Real | None, alpha: float = 1.0, beta: float = 0.0) -> Real:
    """The result of a kernel that sums over k in order, bit for bit, before it is stored."""
    return default_epilogue(sequential(a, b), c, alpha, beta)


def exact(a: Real, b: Real, c: Real | None, alpha: float = 1.0, beta: float = 0.0) -> F64:
    """The result in f64, from the rounded inputs."""
    number = a.dtype.type
    with np.errstate(invalid="ignore"):
        product = float(number(alpha)) * (a.astype(np.float64) @ b.astype(np.float64))
        if beta == 0:
            return product
        assert c is not None
        return product + float(number(beta)) * c.astype(np.float64)


def magnitude(a: Real, b: Real, c: Real | None, alpha: float = 1.0, beta: float = 0.0) -> F64:
    """G = |alpha| |A| |B| + |beta| |C|, the scale of both error bounds."""
    return exact(np.abs(a), np.abs(b), None if c is None else np.abs(c), abs(alpha), abs(beta))


def zero_mean_bound(scale: F64, types: Types = SINGLE) -> F64:
    """16 u G: rounding errors of zero-mean data cancel, so it holds for every K, and detects errors
    within the bound for all-positive data."""
    return 16 * UNIT[types.acc] * scale


def all_positive_bound(scale: F64, k: int, types: Types = SINGLE) -> F64:
    """gamma G, gamma = n u / (1 - n u) with n = K + 2: the sum's roundings and the epilogue's two.

    Higham, "Accuracy and Stability of Numerical Algorithms", 2nd edition, equation (3.5).
    """
    roundings = (k + 2) * UNIT[types.acc]
    return roundings / (1 - roundings) * scale


def stored_bound(want: F64, bound: F64, types: Types = SINGLE) -> F64:
    """The bound of a result with error ``bound`` that is then rounded to C's type."""
    if types.c == types.acc:
        return bound
    return bound + UNIT[types.c] * (np.abs(want) + bound) + TINY[types.c]


@record
class Inputs:
    """A (M, K), B (K, N) and C (M, N), as numbers that their types hold.  A and B never hold the
    same numbers."""

    a: Real
    b: Real
    c: Real


def integers(m: int, n: int, k: int, seed: int, types: Types = SINGLE) -> Inputs:
    """Small non-zero integers: every order of summation gives the same bits.

    A's are odd and B's are even, so that one is never the other.  What f16 and bf16 results could
    not hold exactly, up to 2048 and 256, is made rare by smaller ones.
    """
    rng = np.random.default_rng([seed, 1])
    most = {"f16": 2, "bf16": 1}.get(types.c, 4)
    count = most if k * (2 * most - 1) * 2 * most <= 2**24 else 1
    assert k * (2 * count - 1) * (2 * count) <= 2**24

    def draw(rows: int, cols: int, first: int) -> Real:
        magnitudes = first + 2 * rng.integers(0, count, (rows, cols))
        return (magnitudes * rng.choice((-1, 1), (rows, cols))).astype(computing(types.acc))

    return Inputs(draw(m, k, 1), draw(k, n, 2), draw(m, n, 1))


def permutation(m: int, n: int, k: int, seed: int, types: Types = SINGLE) -> Inputs:
    """B has a single 1 in each column (a permutation where K = N) and A has full mantissas: the
    product is columns of A exactly, and any loss of precision on the way shows."""
    rng = np.random.default_rng([seed, 2])
    values = normal(m, n, k, seed, types)
    b = np.zeros((k, n), computing(types.acc))
    if k:
        b[np.resize(rng.permutation(k), n), np.arange(n)] = 1
    return Inputs(values.a, b, values.c)


def normal(m: int, n: int, k: int, seed: int, types: Types = SINGLE) -> Inputs:
    """Zero-mean, of unit variance."""
    rng = np.random.default_rng([seed, 3])
    a, b, c = (rng.standard_normal(shape) for shape in ((m, k), (k, n), (m, n)))
    return _inputs(a, b, c, types)


def positive(m: int, n: int, k: int, seed: int, types: Types = SINGLE) -> Inputs:
    """Uniform in (0.5, 1.5)."""
    rng = np.random.default_rng([seed, 4])
    a, b, c = (rng.random(shape) + 0.5 for shape in ((m, k), (k, n), (m, n)))
    return _inputs(a, b, c, types)


Maker = Callable[[int, int, int, int, Types], Inputs]
"""Inputs of M, N, K, a seed and types: ``integers``, ``permutation``, ``normal``, ``positive``."""


def batched(
    make: Maker,
    matrix: tuple[int, int, int],
    a: tuple[int, ...],
    b: tuple[int, ...],
    seed: int,
    types: Types = SINGLE,
) -> Inputs:
    """A (*a, M, K), B (*b, K, N) and C (*both, M, N) of matrices like those of ``make``.

    ``matrix`` is M, N, K; ``a`` and ``b`` are the extents of the batches, 1 where all share one.
    """
    m, n, k = matrix
    both = np.broadcast_shapes(a, b)
    rows, columns, outputs = (math.prod(sizes) for sizes in (a, b, both))
    made = make(m * rows, n * columns, k, seed, types)
    c = made.c
    if c.shape != (m * outputs, n):
        c = make(m * outputs, n, 0, seed + 1, types).c
    stacked = np.moveaxis(made.b.reshape(k, *b, n), 0, -2)
    return Inputs(made.a.reshape(*a, m, k), stacked, c.reshape(*both, m, n))


def _inputs(a: F64, b: F64, c: F64, types: Types) -> Inputs:
    """The matrices rounded to what their types hold."""
    number = computing(types.acc)
    return Inputs(
        held(a, types.a).astype(number),
        held(b, types.b).astype(number),
        held(c, types.c).astype(number),
    )


def placed(values: Real, row: int, col: int, value: float) -> Real:
    """A copy of ``values`` with ``value`` (a NaN, an infinity) in one place."""
    copy = values.copy()
    copy[row, col] = value
    return copy


@record
class Comparison:
    """The comparison of two results.

    ``reason`` is None if they agree.  ``index``, ``got`` and ``want`` are those of the first
    difference, ``differing`` counts the differences, and ``max_ulps`` is the greatest distance over
    all elements, in units in the last place of C's type.
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


def compare(
    got: npt.NDArray[np.generic], want: Real, bound: F64 | None = None, dtype: DType = "f32"
) -> Comparison:
    """Compares elements stored as ``dtype`` with numbers, which are rounded to it once: their bits
    (any NaN equals any NaN, 0 is not -0), or with ``bound`` the absolute error.

    Poison in ``got`` is never right, even if a NaN is expected.
    """
    if got.shape != want.shape:
        return Comparison(f"wrong shape: {got.shape}, should be {want.shape}")
    if got.dtype != STORAGE[dtype]:
        return Comparison(f"wrong type: {got.dtype}, should be {STORAGE[dtype]}")
    rounded = stored(want, dtype)
    unwritten = is_poison(got, dtype)
    both_nan = is_nan(got, dtype) & np.isnan(want)
    found = numbers(got, dtype)
    if bound is None:
        right = bits(got) == bits(rounded)
        reason = "wrong bits"
    else:
        with np.errstate(invalid="ignore"):
            right = (found == want) | (np.abs(found.astype(np.float64) - want) <= bound)
        reason = "error beyond the bound"
    wrong = unwritten | ~(right | both_nan)
    ulps = _greatest_distance(got, rounded, dtype)
    if not wrong.any():
        return Comparison(None, max_ulps=ulps)
    index = tuple(int(i) for i in np.argwhere(wrong)[0])
    if unwritten[index]:
        reason = "never written, or computed from what was never written"
    elif np.isnan(found[index]) != np.isnan(want[index]):
        reason = "NaN in one result alone"
    count = int(np.count_nonzero(wrong))
    should = numbers(rounded, dtype) if bound is None else want
    return Comparison(reason, index, float(found[index]), float(should[index]), count, ulps)


def _greatest_distance(got: npt.NDArray[np.generic], want: Stored, dtype: DType) -> int:
    both = ~(is_nan(got, dtype) | is_nan(want, dtype))
    steps = np.abs(_ordered(got[both]) - _ordered(want[both]))
    return int(steps.max(initial=0))


def _ordered(values: npt.NDArray[np.generic]) -> npt.NDArray[np.float64]:
    """Integers in the order of the elements, 1 apart for adjacent ones; both zeros are 0."""
    found = bits(values)
    sign = found.dtype.type(1 << (8 * found.itemsize - 1))
    magnitude = (found & ~sign).astype(np.float64)
    return np.where(found & sign != 0, -magnitude, magnitude)
