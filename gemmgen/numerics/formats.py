"""Element types in NumPy: storage, rounding and poison.

f16 is NumPy's float16; bf16, which NumPy does not have, is its raw bits in uint16.
"""

from __future__ import annotations

from typing import cast

import numpy as np
import numpy.typing as npt

from gemmgen.ir.dtypes import BYTES, DType

F32 = npt.NDArray[np.float32]
F64 = npt.NDArray[np.float64]
Real = npt.NDArray[np.float32 | np.float64]
"""Numbers that are computed with: f64 if sums are, else f32, which represents f16 and bf16."""
Precision = type[np.float32] | type[np.float64]
Stored = npt.NDArray[np.float32 | np.float64 | np.float16 | np.uint16]
"""Elements as they are stored in memory."""
Bits = npt.NDArray[np.uint16 | np.uint32 | np.uint64]

STORAGE: dict[DType, np.dtype[np.generic]] = {
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(np.uint16),
}
NAMES: dict[DType, str] = {"f32": "float32", "f64": "float64", "f16": "float16", "bf16": "bfloat16"}
"""Their names in array libraries."""
UNIT: dict[DType, float] = {"f32": 2.0**-24, "f64": 2.0**-53, "f16": 2.0**-11, "bf16": 2.0**-8}
"""Unit roundoff: a rounded result's relative error is at most this."""
TINY: dict[DType, float] = {"f32": 2.0**-149, "f64": 2.0**-1074, "f16": 2.0**-24, "bf16": 2.0**-133}
"""The smallest positive number: subnormal results are off by at most half of it."""

_UNSIGNED = {2: np.dtype(np.uint16), 4: np.dtype(np.uint32), 8: np.dtype(np.uint64)}
_INFINITY: dict[DType, int] = {"f32": 0x7F800000, "f64": 0x7FF << 52, "f16": 0x7C00, "bf16": 0x7F80}

_POISON: dict[DType, tuple[int, int]] = {
    "f32": (0x7FD00000, 0x000FFFFF),
    "f64": (0x7FFD << 48, (1 << 48) - 1),
    "f16": (0x7D00, 0x00FF),
    "bf16": (0x7FA0, 0x001F),
}
"""A NaN, and the bits of its payload, which holds an element's position."""


def computing(dtype: DType) -> Precision:
    """The type that NumPy computes with for elements of ``dtype``."""
    return np.float64 if dtype == "f64" else np.float32


def bits(values: npt.NDArray[np.generic]) -> Bits:
    """The elements' bits; those of a view that is not contiguous are copied."""
    return np.ascontiguousarray(values).view(_UNSIGNED[values.dtype.itemsize])


def stored(values: npt.NDArray[np.generic], dtype: DType) -> Stored:
    """``values`` rounded to ``dtype``, to the nearest, ties to even."""
    with np.errstate(all="ignore"):
        if dtype == "f32":
            return values.astype(np.float32)
        if dtype == "f64":
            return values.astype(np.float64)
        return values.astype(np.float16) if dtype == "f16" else _to_bf16(values)


def numbers(elements: npt.NDArray[np.generic], dtype: DType) -> Real:
    """Stored elements as numbers to compute with."""
    if dtype == "f64":
        return elements.astype(np.float64)
    if dtype == "bf16":
        return (elements.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return elements.astype(np.float32)


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


def is_nan(elements: npt.NDArray[np.generic], dtype: DType) -> npt.NDArray[np.bool_]:
    """Which stored elements are NaN."""
    sign = 1 << (8 * BYTES[dtype] - 1)
    found = bits(elements)
    return found & found.dtype.type(sign - 1) > found.dtype.type(_INFINITY[dtype])


def poison(count: int, dtype: DType = "f32") -> Stored:
    """NaNs that mean "never written".

    The payload is an element's position, which exposes poison copied from elsewhere.
    """
    base, payload = _POISON[dtype]
    unsigned = _UNSIGNED[BYTES[dtype]]
    found = np.arange(count).astype(unsigned) & unsigned.type(payload) | unsigned.type(base)
    return cast(Stored, found.view(STORAGE[dtype]))


def is_poison(elements: npt.NDArray[np.generic], dtype: DType = "f32") -> npt.NDArray[np.bool_]:
    """Which elements were never written, or computed from such elements by arithmetic that
    propagates a NaN's payload (conversions don't)."""
    base, payload = _POISON[dtype]
    found = bits(elements)
    kind = found.dtype.type
    # The simulator sets all bits of shared memory before each block.
    return (found & ~kind(payload) == kind(base)) | (found == ~kind(0))
