"""Fused multiply-adds in NumPy, equal to ``fmaf`` and ``fma``.

Both follow Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008: a sum rounded
to odd can be rounded again without error.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gemmgen.numerics.formats import F32, F64, Real

Operand = Real | np.float32 | np.float64
_SPLITTER = 2.0**27 + 1
_LARGE, _SMALL = 2.0**480, 2.0**-480
"""Outside these bounds, parts of a product are outside the range of f64."""
_REST, _MIDDLE = 2**29 - 1, 2**28
"""The bits of an f64 that f32 lacks, and those of the middle of two f32."""
_LEAST = 2.0**-126
"""The least normal f32."""


def fma(a: npt.ArrayLike, b: npt.ArrayLike, c: npt.ArrayLike) -> F32:
    """``a * b + c``, rounded once to f32, element by element; the operands are f32.

    The product is exact in f64.  Rounding its sum twice is wrong only where f64 gives the middle
    of two f32, or a number that f32 holds with fewer bits: there the sum is rounded to odd first.
    """
    with np.errstate(all="ignore"):
        product = np.multiply(a, b, dtype=np.float64)
        addend = np.asarray(c, np.float64)
        total = np.asarray(product + addend)
        found = np.asarray(total.astype(np.float32))
        hard = (total.view(np.int64) & _REST) == _MIDDLE
        hard |= (np.abs(total) < _LEAST) & (total != 0)
        if hard.any():
            parts = (np.broadcast_to(part, total.shape)[hard] for part in (product, addend))
            found[hard] = _odd_sum(*parts).astype(np.float32)
        return found


def fma_f64(a: npt.ArrayLike, b: npt.ArrayLike, c: npt.ArrayLike) -> F64:
    """``a * b + c``, rounded once to f64; the operands are f64.

    An element whose exact product is not a sum of two f64 (they would be out of range) is computed
    with Python's rational numbers.
    """
    x, y, z = np.broadcast_arrays(*(np.asarray(v, np.float64) for v in (a, b, c)))
    with np.errstate(all="ignore"):
        high, low = _product(x, y)
        sum_high, sum_low = _sum(z, low)
        total, rest = _sum(high, sum_high)
        found = np.asarray(total + _odd_sum(sum_low, rest))
        plain = np.asarray(x * y + z)
        size = np.maximum(np.abs(plain), np.abs(x * y))
        finite = np.isfinite(x) & np.isfinite(y) & np.isfinite(z)
        zero = (x == 0) | (y == 0)
        found = np.where(finite & ~zero, found, plain)
        parts = np.stack(np.broadcast_arrays(np.abs(x), np.abs(y), np.abs(x * y), np.abs(z)))
        extreme = (parts > _LARGE) | ((parts < _SMALL) & (parts[3] != 0))
        hard = finite & ~zero & (extreme.any(axis=0) | (size == 0))
    for at in np.argwhere(hard):
        index = tuple(at)
        found[index] = _exactly(float(x[index]), float(y[index]), float(z[index]))
    return found


def fused(a: Operand, b: Operand, c: Operand) -> Real:
    """The multiply-add of the operands' type."""
    if np.asarray(a).dtype == np.float64 or np.asarray(c).dtype == np.float64:
        return fma_f64(a, b, c)
    return fma(a, b, c)


def _exactly(a: float, b: float, c: float) -> float:
    """One multiply-add in rational numbers, which Python rounds correctly."""
    (an, ad), (bn, bd), (cn, cd) = (v.as_integer_ratio() for v in (a, b, c))
    numerator = an * bn * cd + cn * ad * bd
    if numerator == 0:
        return a * b + c
    try:
        return numerator / (ad * bd * cd)
    except OverflowError:
        return float("inf") if numerator > 0 else float("-inf")


def _odd_sum(x: F64, y: F64) -> F64:
    """``x + y`` rounded to odd: if it is inexact, to the neighbor whose last bit is set."""
    total, error = _sum(x, y)
    bits = total.view(np.int64)
    inexact = (error != 0) & np.isfinite(error) & (bits & 1 == 0)
    away = (error > 0) == (total > 0)
    return np.where(inexact, bits + np.where(away, 1, -1), bits).view(np.float64)


def _sum(x: F64, y: F64) -> tuple[F64, F64]:
    """The rounded sum and its error (Knuth, "The Art of Computer Programming", volume 2, 4.2.2)."""
    total = np.asarray(x + y)
    back = total - x
    return total, (x - (total - back)) + (y - back)


def _product(x: F64, y: F64) -> tuple[F64, F64]:
    """The rounded product and its error (Dekker, 1971)."""
    product = np.asarray(x * y)
    (xh, xl), (yh, yl) = _halves(x), _halves(y)
    return product, ((xh * yh - product) + xh * yl + xl * yh) + xl * yl


def _halves(x: F64) -> tuple[F64, F64]:
    scaled = x * _SPLITTER
    high = scaled - (scaled - x)
    return high, x - high
