"""Element types in NumPy: storage, rounding and poison.

f16 is NumPy's float16; bf16, which NumPy does not have, is its raw bits in uint16.  Integers are
computed with as f64, which represents those of i32 and the products of i8.
"""

from __future__ import annotations

from functools import cache
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from gemmgen.ir.dtypes import BYTES, DTYPES, FP8, INTEGERS, NARROW, DType

F32 = npt.NDArray[np.float32]
F64 = npt.NDArray[np.float64]
Real = npt.NDArray[np.float32 | np.float64]
"""The numbers to compute with: f64 if the accumulators are f64 or i32; else f32, which represents
f16 and bf16."""
Precision = type[np.float32] | type[np.float64]
Stored = npt.NDArray[
    np.float32 | np.float64 | np.float16 | np.uint16 | np.uint8 | np.int8 | np.int32
]
"""Elements as they are stored in memory."""
Bits = npt.NDArray[np.uint8 | np.uint16 | np.uint32 | np.uint64]

STORAGE: dict[DType, np.dtype[np.generic]] = {
    name: np.dtype(traits.array) for name, traits in DTYPES.items()
}
NAMES: dict[DType, str] = {name: traits.name for name, traits in DTYPES.items()}
"""The names of these types in array libraries."""
UNIT: dict[DType, float] = {name: traits.unit for name, traits in DTYPES.items()}
"""Unit roundoff: a rounded result's relative error is at most this."""
TINY: dict[DType, float] = {name: traits.tiny for name, traits in DTYPES.items()}
"""The smallest positive number: subnormal results are off by at most half of it."""
GREATEST: dict[DType, tuple[float, float]] = {
    name: (traits.least, traits.greatest) for name, traits in DTYPES.items() if traits.saturates
}
"""The least and the greatest number of types to which conversions saturate."""

_UNSIGNED = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}


def computing(dtype: DType) -> Precision:
    """The type that NumPy computes with for elements of ``dtype``."""
    return np.float64 if dtype in ("f64", "i32") else np.float32


def wrapped(values: Real) -> Real:
    """Integers modulo 2^32, as i32 accumulators hold them. A NaN stays a NaN."""
    return values - 2.0**32 * np.floor((values + 2.0**31) / 2.0**32)


def bits(values: npt.NDArray[np.generic]) -> Bits:
    """The elements' bits; those of a view that is not contiguous are copied."""
    found = np.ascontiguousarray(values).view(_UNSIGNED[values.dtype.itemsize])
    return found.reshape(values.shape)  # of one number, too


def stored(values: npt.NDArray[np.generic], dtype: DType) -> Stored:
    """``values`` rounded to ``dtype``, to the nearest, ties to even; to types of a byte
    they saturate, and as i8 a NaN is 0.  Of i32 they are its integers, and tf32 is stored as f32.
    """
    with np.errstate(all="ignore"):
        if dtype in INTEGERS:
            whole = np.rint(np.nan_to_num(values, nan=0.0, posinf=np.inf, neginf=-np.inf))
            if dtype in GREATEST:
                whole = np.clip(whole, *GREATEST[dtype])
            return cast(Stored, whole.astype(STORAGE[dtype]))
        if dtype in ("f32", "tf32"):
            return values.astype(np.float32)
        if dtype == "f64":
            return values.astype(np.float64)
        if dtype in FP8:
            return cast(Stored, to_byte(values, dtype))
        return values.astype(np.float16) if dtype == "f16" else _to_bf16(values)


def numbers(elements: npt.NDArray[np.generic], dtype: DType) -> Real:
    """Stored elements as numbers to compute with."""
    if dtype in ("f64", "i32"):
        return elements.astype(np.float64)
    if dtype == "bf16":
        return (elements.astype(np.uint32) << np.uint32(16)).view(np.float32)
    if dtype in FP8:
        return numbers_of_bytes(dtype)[elements.astype(np.intp)]
    singles = elements.astype(np.float32)
    return to_tf32(singles) if dtype == "tf32" else singles


def held(values: npt.NDArray[np.generic], dtype: DType) -> Real:
    """``values`` rounded to ``dtype``, as numbers to compute with."""
    return numbers(stored(values, dtype), dtype)


def _to_bf16(values: npt.NDArray[np.generic]) -> npt.NDArray[np.uint16]:
    """The upper half of an f32, rounded; f64 is first rounded to odd, which avoids double rounding
    (Boldo and Melquiond, 2008)."""
    singles = values.astype(np.float32)
    whole = singles.view(np.uint32)
    if values.dtype == np.float64:
        lost = (singles != values) & np.isfinite(singles) & (whole & np.uint32(1) == 0)
        away = np.abs(values) > np.abs(singles.astype(np.float64))
        step = np.where(away, 1, -1).astype(np.int32).view(np.uint32)
        whole = np.where(lost, whole + step, whole)
    half = np.uint32(0x7FFF) + (whole >> np.uint32(16) & np.uint32(1))
    rounded = ((whole + half) >> np.uint32(16)).astype(np.uint16)
    return np.where(np.isnan(values), np.uint16(0x7FFF), rounded)


@cache
def numbers_of_bytes(dtype: DType) -> F32:
    """The number that each byte of e4m3 or e5m2 represents."""
    if dtype == "e4m3":
        return _decoded(3, 7, 0x7E)
    found = _decoded(2, 15, 0x7C)
    found[[0x7C, 0xFC]] = np.inf, -np.inf
    return found


def _decoded(fraction: int, bias: int, last: int) -> F32:
    """The value of each byte: a sign bit, exponent bits and ``fraction`` bits; a magnitude above
    ``last`` is NaN."""
    magnitude = np.arange(128)
    exponent, rest = magnitude >> fraction, magnitude % (1 << fraction) * 2.0**-fraction
    normal = (1 + rest) * 2.0 ** (exponent - bias)
    positive = np.where(exponent == 0, rest * 2.0 ** (1 - bias), normal)
    positive = np.where(magnitude > last, np.nan, positive)
    return np.concatenate((positive, -positive)).astype(np.float32)


def to_byte(values: Any, dtype: DType, library: Any = np) -> Any:
    """The e4m3 or e5m2 bytes nearest to ``values``, ties to even; ``library`` is NumPy or a
    compatible one."""
    _, most = GREATEST[dtype]
    positive = library.asarray(numbers_of_bytes(dtype)[:128].astype(np.float64))
    last = int(np.argmax(numbers_of_bytes(dtype)[:128] == most))
    middles = (positive[:last] + positive[1 : last + 1]) / 2
    magnitude = library.abs(values).astype(np.float64)
    # As many middles as are below: a tie, at an odd number's upper middle, goes up to the even one.
    below = library.searchsorted(middles, magnitude, side="left")
    ties = middles[library.minimum(below, last - 1)] == magnitude
    nearest = below + (ties & (below % 2 == 1))
    nearest = library.where(library.isnan(magnitude), 0x7F, nearest)
    sign = library.where(library.signbit(values) & ~library.isnan(values), 0x80, 0)
    return (nearest | sign).astype(np.uint8)


def to_tf32(singles: Any, library: Any = np) -> Any:
    """f32 rounded to 10 bits after the point, to the nearest, ties away from zero, as
    ``cvt.rna.tf32.f32`` does; ``library`` is NumPy, or one like it."""
    whole = library.ascontiguousarray(singles).view("uint32").reshape(singles.shape)
    rounded = (whole + 0x1000 & 0xFFFFE000).astype("uint32").view("float32")
    return library.where(library.isfinite(singles), rounded, singles).astype("float32")


def cut_to_tf32(singles: Any, library: Any = np) -> Any:
    """f32 numbers truncated to tf32, without the last 13 fraction bits, as instructions read them
    that load f32 from shared memory. A NaN with no other fraction bits becomes an infinity."""
    whole = library.ascontiguousarray(singles).view("uint32").reshape(singles.shape)
    return (whole & 0xFFFFE000).astype("uint32").view("float32")


def near_tf32(singles: Any, library: Any = np, *, cut: bool = False) -> Any:
    """f32 numbers that round to those of tf32 given, or from which these are ``cut`` off: with
    other bits below the 10 that stay, so that who reads them otherwise has other results.  The last
    one is set: a run of the text takes 16 bits that are 0xfefe for what was never written."""
    whole = library.ascontiguousarray(singles).view("uint32").reshape(singles.shape)
    noise = library.arange(whole.size, dtype="uint32").reshape(whole.shape) * 0x9E6 % 0x2000 + 1
    below = noise
    if not cut:
        below = library.where(whole & 0x7FFFFFFF == 0, noise // 2, noise - 0x1000)
    moved = (whole + below).astype("uint32").view("float32")
    return library.where(library.isfinite(singles), moved, singles).astype("float32")


def is_nan(elements: npt.NDArray[np.generic], dtype: DType) -> npt.NDArray[np.bool_]:
    """Which stored elements are NaN; no integer is."""
    if dtype in INTEGERS:
        return np.zeros(elements.shape, np.bool_)
    sign = 1 << (8 * BYTES[dtype] - 1)
    found = bits(elements)
    return found & found.dtype.type(sign - 1) > found.dtype.type(DTYPES[dtype].infinity)


def poison(count: int, dtype: DType = "f32") -> Stored:
    """NaNs that mean "never written"; integers that hardly ever are results.

    The payload is an element's position, which exposes poison copied from elsewhere.
    """
    base, payload = DTYPES[dtype].poison
    unsigned = _UNSIGNED[BYTES[dtype]]
    at = np.arange(count)
    if dtype in NARROW:  # neighbours differ in many bits, and far ones, too
        at = at * 0x9D ^ at >> 8
    found = at.astype(unsigned) & unsigned.type(payload) | unsigned.type(base)
    return cast(Stored, found.view(STORAGE[dtype]))


def is_poison(elements: npt.NDArray[np.generic], dtype: DType = "f32") -> npt.NDArray[np.bool_]:
    """Which elements were never written, or computed from such elements by arithmetic that
    propagates a NaN's payload (conversions don't). Of integers none can be recognized by its
    bits."""
    if dtype in INTEGERS:
        return np.zeros(elements.shape, np.bool_)
    base, payload = DTYPES[dtype].poison
    found = bits(elements)
    kind = found.dtype.type
    # The simulator sets all bits of shared memory before each block.
    return (found & ~kind(payload) == kind(base)) | (found == ~kind(0))
