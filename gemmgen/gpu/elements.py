"""Elements on a GPU: numbers rounded to a type and back, and their bits.

CuPy has no bfloat16; uint16 holds its bits, as in a kernel's memory.
"""

from __future__ import annotations

from typing import cast

import numpy as np
import numpy.typing as npt

from gemmgen.gpu.device import DeviceArray, cupy
from gemmgen.ir.dtypes import FP8, INTEGERS, DType
from gemmgen.numerics.drawing import ArrayLibrary
from gemmgen.numerics.formats import GREATEST, STORAGE, Real, numbers_of_bytes, to_byte, to_tf32

_UNSIGNED = {1: "uint8", 2: "uint16", 4: "uint32", 8: "uint64"}
NAN_BF16 = 0x7FC0


def storage(dtype: DType) -> str:
    """CuPy's type of an array of such elements."""
    return STORAGE[dtype].name


def elements(numbers: DeviceArray, dtype: DType) -> DeviceArray:
    """``numbers`` rounded to ``dtype``, to the nearest, ties to even; to i8 they saturate."""
    if dtype == "i8":
        numbers = cupy().clip(cupy().nan_to_num(numbers), *GREATEST[dtype])
    if dtype in INTEGERS:
        return cupy().rint(numbers).astype(storage(dtype))
    if dtype in FP8:
        return to_byte(numbers, dtype, cupy())
    if dtype != "bf16":
        return numbers.astype(storage(dtype))
    bits = numbers.astype("float32").view("uint32")
    rounded = (bits + ((bits >> 16 & 1) + 0x7FFF)) >> 16
    return cupy().where(cupy().isnan(numbers), NAN_BF16, rounded).astype("uint16")


def numbers(found: DeviceArray, dtype: DType) -> DeviceArray:
    """Elements as numbers to compute with: float64 if they are, else float32."""
    if dtype in FP8:
        return cupy().asarray(numbers_of_bytes(dtype))[found]
    if dtype == "bf16":
        return (found.astype("uint32") << 16).view("float32")
    if dtype == "tf32":
        return to_tf32(found, cupy())
    return found.astype("float64" if dtype in ("f64", "i32") else "float32")


def held(values: DeviceArray, dtype: DType) -> DeviceArray:
    """``values`` rounded to numbers that ``dtype`` represents."""
    return numbers(elements(values, dtype), dtype)


def nan(dtype: DType) -> float:
    """The fill value that makes elements NaN; of integers, one that results rarely are."""
    if dtype in INTEGERS:
        return 85
    if dtype in FP8:
        return 0x7F
    return NAN_BF16 if dtype == "bf16" else float("nan")


def bits(found: DeviceArray) -> DeviceArray:
    """The bits of an array's elements."""
    return found.view(_UNSIGNED[found.dtype.itemsize])


def _generator(seed: int) -> np.random.Generator:
    return cast(np.random.Generator, cupy().random.default_rng(seed))


def _asarray(values: npt.NDArray[np.generic]) -> Real:
    return cast(Real, cupy().asarray(values))


def _held(values: Real, dtype: DType) -> Real:
    return cast(Real, held(cast(DeviceArray, values), dtype))


LIBRARY = ArrayLibrary(_generator, _asarray, _held)
"""CuPy, where numbers for tests are drawn."""
