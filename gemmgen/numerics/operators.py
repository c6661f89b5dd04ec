"""The operators and functions of expressions, on NumPy arrays.

``expressions`` runs lowered code with these tables, ``epilogue`` computes over whole matrices.
Floats are rounded after each operation to the precision of their arguments.  NaN passes through
relu, min, max and clamp.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from functools import cache
from typing import cast

import numpy as np
import numpy.typing as npt

from gemmgen.ir.dtypes import BYTES, RAW, ROUNDED, DType
from gemmgen.numerics.formats import STORAGE, bits, is_poison, numbers, stored, wrapped

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32 | np.float64]
Bools = npt.NDArray[np.bool_]
Value = int | np.float32 | np.float64 | np.bool_ | Ints | Floats | Bools
"""One value for all threads, or an array of one value for each."""

Number = np.float32 | np.float64
Real = Number | Floats

Operation = Callable[[Value, Value], Value]


def _operator(name: str) -> Operation:
    """A function of ``operator``, whose own type says less than it does."""
    return cast(Operation, getattr(operator, name))


ARITHMETIC = {"+": _operator("add"), "-": _operator("sub"), "*": _operator("mul")}
INTEGER = {
    "/": _operator("floordiv"),
    "%": _operator("mod"),
    "^": _operator("xor"),
    "<<": _operator("lshift"),
}
"""Of integers alone.  They are C's if neither operand is negative, as all index arithmetic
is."""

_COMPARISONS = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne"}
COMPARE = {sign: _operator(name) for sign, name in _COMPARISONS.items()}
divide = _operator("truediv")


def negate(number: Value) -> Value:
    """``-number``; of 0.0 it is -0.0."""
    return -number if isinstance(number, int) else cast(Value, np.negative(number))


def invert(condition: Value) -> Value:
    """``!condition``."""
    return np.logical_not(condition)


def fmaf(a: Real, b: Real, c: Real) -> Real:
    """``a * b + c`` of f32 arguments.

    The product is exact in f64, the sum is rounded to f64 and then to f32: on integers below 2^24,
    and wherever the sum is exact in f64, that is the correctly rounded result.
    """
    product = np.multiply(a, b, dtype=np.float64)
    total = np.add(product, c, dtype=np.float64)
    return cast(Real, total.astype(np.float32))


def fma(a: Real, b: Real, c: Real) -> Real:
    """``a * b + c`` of f64 arguments: right if the product is exact, as of integers."""
    return cast(Real, np.add(np.multiply(a, b, dtype=np.float64), c, dtype=np.float64))


def mad(a: Real, b: Real, c: Real) -> Real:
    """``a * b + c`` of integers, held as f64, modulo 2^32; a NaN, which is not an integer's,
    stays."""
    factors = np.asarray(a, np.float64), np.asarray(b, np.float64)
    if max(float(np.nanmax(np.abs(x), initial=0.0)) for x in factors) <= 2.0**20:
        return cast(Real, wrapped(np.add(np.multiply(*factors), c, dtype=np.float64)))
    low = np.mod(factors[1], 2.0**16)  # in halves, so that no product is rounded
    high = factors[0] * ((factors[1] - low) / 2.0**16)
    total = np.mod(high, 2.0**16) * 2.0**16 + factors[0] * low
    return cast(Real, wrapped(np.add(total, c, dtype=np.float64)))


def _in_f64(function: Callable[[npt.NDArray[np.float64]], npt.NDArray[np.float64]]) -> Function:
    """``function`` computed in f64 and rounded to its argument's precision."""

    def rounded(x: Real) -> Real:
        return cast(Real, function(np.asarray(x, np.float64)).astype(np.asarray(x).dtype))

    return rounded


Function = Callable[..., Real]
_erf = np.vectorize(math.erf, otypes=[np.float64])


def _sigmoid(x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return 1 / (1 + np.exp(-x))


def _gelu(x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return x / 2 * (1 + _erf(x / math.sqrt(2)))


def _gelu_tanh(x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def _clamp(x: Real, low: Real, high: Real) -> Real:
    return np.minimum(np.maximum(x, low), high)


def _relu(x: Real) -> Real:
    return np.where(np.less(x, 0), np.zeros_like(x), x)


def row_scale(largest: Real) -> Real:
    """The power of two with which the largest magnitude of a row is at least 2^14 and below 2^15;
    2^126 at most, 2^-114 at least (``Decomposition.scaled``)."""
    exponent = np.asarray(largest, np.float32).view(np.int32) >> 23
    scale = (268 - np.maximum(exponent, 15)).astype(np.int32) << 23
    return cast(Real, scale.astype(np.int32).view(np.float32))


def _larger(one: Real, other: Real) -> Real:
    """``fmaxf``: of a number and a NaN the number."""
    return np.fmax(one, other)


FUNCTIONS: dict[str, Function] = {
    "fmaf": fmaf,
    "mad": mad,
    "relu": _relu,
    "gelu": _in_f64(_gelu),
    "gelu_tanh": _in_f64(_gelu_tanh),
    "silu": _in_f64(lambda x: x * _sigmoid(x)),
    "sigmoid": _in_f64(_sigmoid),
    "tanh": _in_f64(np.tanh),
    "exp": _in_f64(np.exp),
    "erf": _in_f64(_erf),
    "sqrt": np.sqrt,
    "abs": np.abs,
    "min": np.minimum,
    "max": np.maximum,
    "clamp": _clamp,
    "round": np.rint,
    "row_scale": row_scale,
    "largest": _larger,
}

DOUBLE: dict[str, Function] = {
    "fma": fma,
    **{f"{name}_f64": FUNCTIONS[name] for name in ("exp", "tanh", "erf", "sqrt", "abs", "round")},
}
"""Functions that lowered code calls in double precision."""


@cache
def _curve(side: int) -> Ints:
    """The tiles of a square in the order of a Hilbert curve, numbered column by column: four curves
    of half the side; the first and the last one are rotated."""
    if side == 1:
        return np.zeros(1, np.int64)
    half = side // 2
    column, row = np.divmod(_curve(half), half)
    columns = (row, column, column + half, side - 1 - row)
    rows = (column, row + half, row + half, half - 1 - column)
    return np.concatenate(columns) * side + np.concatenate(rows)


def hilbert(number: Value, side: Value) -> Value:
    """The number, column by column, of the tile that is the ``number``-th along a Hilbert curve
    through each square of ``side`` x ``side`` tiles."""
    curve, tile = _curve(int(side)), np.asarray(number, np.int64)
    square, place = np.divmod(tile, curve.size)
    return cast(Value, square * curve.size + curve[place])


OF_INTS: dict[str, Operation] = {"hilbert": hilbert}
"""Functions that lowered code calls in index arithmetic."""


def _from_bits(dtype: DType) -> Function:
    def widen(raw: Value) -> Real:
        kind = STORAGE[dtype] if dtype in ROUNDED else np.dtype(f"u{BYTES[dtype]}")
        held = np.asarray(raw, kind).view(STORAGE[dtype])
        return cast(Real, numbers(held, dtype)[()])

    return widen


def _to_bits(dtype: DType) -> Callable[[Value], Value]:
    def narrow(number: Value) -> Value:
        return cast(Value, bits(stored(np.asarray(number), dtype))[()])

    return narrow


def _to_i8(number: Value) -> Value:
    """As an integer that is held as f64.  What was computed from poison stays a NaN."""
    given = np.asarray(number, np.float32)
    found = np.where(is_poison(given), np.nan, numbers(stored(given, "i8"), "i32"))
    return cast(Value, found[()])


FROM_BITS = {f"from_{dtype}": _from_bits(dtype) for dtype in (*RAW, *ROUNDED)}
TO_BITS = {f"to_{dtype}": _to_bits(dtype) for dtype in RAW}
TO_INTEGERS = {"to_i8": _to_i8}
"""Conversions between f32 and the raw bits of smaller types."""
