"""Element types: what an element takes in memory, and what accumulators are computed in."""

from __future__ import annotations

from typing import Literal

from gemmgen.base.record import record

DType = Literal["f32", "f64", "f16", "bf16", "tf32", "e4m3", "e5m2", "i8", "i32"]
"""IEEE 754 binary32, binary64 and binary16, bfloat16 (the upper half of a binary32), FP8
(OCP's; e4m3 has no infinity), and integers in two's complement.  tf32 is stored as
f32, and rounded to 10 bits after the point when it is read to be multiplied; an instruction that
reads it in shared memory itself cuts it off there."""

OLDEST = 75
"""The first architecture that kernels are made for: sm_75."""

Kind = Literal["number", "raw", "rounded", "integer"]
"""How a kernel computes with elements.

``number``: as they are.  ``raw``: it stores them as bits, and computes with f32 after a conversion.
``rounded``: they are stored as f32, and rounded when they are read to be multiplied.  ``integer``:
as C's int; a NaN, which would say "never written", they lack.
"""


@record
class DTypeTraits:
    """One element type.  What is computed with it is elsewhere; what it is, is here alone.

    ``digits``: binary digits of a significand (0: integers, which are exact).  ``tiny``: the
    smallest positive number.  ``greatest``: the greatest finite one, to which conversions saturate
    if ``saturates``.  ``infinity``: the bits above which, the sign apart, are NaNs alone (e4m3 has
    no infinity).  ``poison``: bits that mean "never written", a NaN, and those of its payload,
    which holds an element's position; of integers, a number that results rarely are.
    """

    bytes: int
    kind: Kind
    stored: str
    """C's type of an element in memory: a kernel includes no header."""
    array: str
    """NumPy's type of stored elements."""
    name: str
    """What array libraries call the type."""
    digits: int
    tiny: float
    greatest: float
    infinity: int
    poison: tuple[int, int]
    tensor_map: tuple[int, str]
    """The number and the name of ``CU_TENSOR_MAP_DATA_TYPE_*``."""
    cuda: tuple[int, str]
    """The number and the name of ``cudaDataType_t``, ``CUDA_R_*``."""
    ptx: str
    called: str
    """Its names in other languages and libraries."""
    since: int = OLDEST
    """The first architecture that converts it, or multiplies it."""
    saturates: bool = False
    results: DType | None = None
    """C's type where this one is stated for all, if it is not an useful one of results."""

    @property
    def unit(self) -> float:
        """Unit roundoff: a rounded result's relative error is at most this."""
        return 2.0**-self.digits if self.digits else 0.0

    @property
    def least(self) -> float:
        """The least number."""
        return -self.greatest - (self.kind == "integer")


DTYPES: dict[DType, DTypeTraits] = {
    "f32": DTypeTraits(
        bytes=4,
        kind="number",
        stored="float",
        array="float32",
        name="float32",
        digits=24,
        tiny=2.0**-149,
        greatest=(2 - 2.0**-23) * 2.0**127,
        infinity=0x7F800000,
        poison=(0x7FD00000, 0x000FFFFF),
        tensor_map=(7, "FLOAT32"),
        cuda=(0, "32F"),
        ptx="f32",
        called="float float32 fp32 single s sgemm binary32",
    ),
    "f64": DTypeTraits(
        bytes=8,
        kind="number",
        stored="double",
        array="float64",
        name="float64",
        digits=53,
        tiny=2.0**-1074,
        greatest=(2 - 2.0**-52) * 2.0**1023,
        infinity=0x7FF << 52,
        poison=(0x7FFD << 48, (1 << 48) - 1),
        tensor_map=(8, "FLOAT64"),
        cuda=(1, "64F"),
        ptx="f64",
        called="double float64 fp64 d dgemm binary64",
    ),
    "f16": DTypeTraits(
        bytes=2,
        kind="raw",
        stored="unsigned short",
        array="float16",
        name="float16",
        digits=11,
        tiny=2.0**-24,
        greatest=65504.0,
        infinity=0x7C00,
        poison=(0x7D00, 0x00FF),
        tensor_map=(6, "FLOAT16"),
        cuda=(2, "16F"),
        ptx="f16",
        called="half float16 fp16 h hgemm __half half_t binary16",
    ),
    "bf16": DTypeTraits(
        bytes=2,
        kind="raw",
        stored="unsigned short",
        array="uint16",
        name="bfloat16",
        digits=8,
        tiny=2.0**-133,
        greatest=(2 - 2.0**-7) * 2.0**127,
        infinity=0x7F80,
        poison=(0x7FA0, 0x001F),
        tensor_map=(9, "BFLOAT16"),
        cuda=(14, "16BF"),
        ptx="bf16",
        called="bfloat16 bfloat nv_bfloat16 __nv_bfloat16 bfloat16_t b16",
        since=80,
    ),
    "tf32": DTypeTraits(
        bytes=4,
        kind="rounded",
        stored="float",
        array="float32",
        name="float32",
        digits=11,
        tiny=2.0**-136,
        greatest=(2 - 2.0**-10) * 2.0**127,
        infinity=0x7F800000,
        poison=(0x7FD00000, 0x000FFFFF),
        tensor_map=(7, "FLOAT32"),
        cuda=(0, "32F"),
        ptx="tf32",
        called="tfloat32 fp32_tf32 tensorfloat32 TensorFloat-32",
        since=80,
        results="f32",
    ),
    "e4m3": DTypeTraits(
        bytes=1,
        kind="raw",
        stored="unsigned char",
        array="uint8",
        name="float8_e4m3fn",
        digits=4,
        tiny=2.0**-9,
        greatest=448.0,
        infinity=0x7E,
        poison=(0xFF, 0),
        tensor_map=(0, "UINT8"),
        cuda=(28, "8F_E4M3"),
        ptx="e4m3",
        called="fp8 f8 e4m3fn f8e4m3 f8e4m3fn float8 float8_e4m3 float8_e4m3fn __nv_fp8_e4m3",
        since=89,
        saturates=True,
        results="f32",
    ),
    "e5m2": DTypeTraits(
        bytes=1,
        kind="raw",
        stored="unsigned char",
        array="uint8",
        name="float8_e5m2",
        digits=3,
        tiny=2.0**-16,
        greatest=57344.0,
        infinity=0x7C,
        poison=(0xFD, 0x02),
        tensor_map=(0, "UINT8"),
        cuda=(29, "8F_E5M2"),
        ptx="e5m2",
        called="f8e5m2 float8_e5m2 __nv_fp8_e5m2",
        since=89,
        saturates=True,
        results="f32",
    ),
    "i8": DTypeTraits(
        bytes=1,
        kind="integer",
        stored="signed char",
        array="int8",
        name="int8",
        digits=0,
        tiny=1.0,
        greatest=127.0,
        infinity=0xFF,
        poison=(0x55, 0xAA),
        tensor_map=(0, "UINT8"),
        cuda=(3, "8I"),
        ptx="s8",
        called="int8 s8 int8_t char igemm",
        saturates=True,
        results="i32",
    ),
    "i32": DTypeTraits(
        bytes=4,
        kind="integer",
        stored="int",
        array="int32",
        name="int32",
        digits=0,
        tiny=1.0,
        greatest=2.0**31 - 1,
        infinity=0xFFFFFFFF,
        poison=(0x5D000000, 0x00FFFFFF),
        tensor_map=(3, "INT32"),
        cuda=(10, "32I"),
        ptx="s32",
        called="int32 s32 int32_t int",
    ),
}


def _of(kind: Kind) -> tuple[DType, ...]:
    return tuple(name for name, traits in DTYPES.items() if traits.kind == kind)


BYTES: dict[DType, int] = {name: traits.bytes for name, traits in DTYPES.items()}
"""What an element takes in memory."""

ACCESS = 16
"""Bytes of the widest access."""

RAW, ROUNDED, INTEGERS = _of("raw"), _of("rounded"), _of("integer")

HALVES: tuple[DType, ...] = tuple(name for name in RAW if BYTES[name] == 2)
"""Types that a kernel stores as 16 raw bits."""

FP8: tuple[DType, ...] = tuple(name for name in RAW if BYTES[name] == 1)

NARROW = tuple(name for name in DTYPES if BYTES[name] == 1)
"""Types of one byte, too coarse for vectors and matrices of an epilogue unless they are stated."""


def sums_of(a: DType, b: DType) -> DType:
    """What the accumulators of products are kept in where nothing else is stated."""
    return "i32" if (a, b) == ("i8", "i8") else "f32"


def in_blas(a: DType, b: DType, c: DType) -> bool:
    """Whether BLAS has a product of these types, with accumulators in f32, or in f64 if all are
    f64."""
    plain = a == b and BYTES[a] > 1 and DTYPES[a].kind in ("number", "raw")
    return plain and (c == a or (a in HALVES and c == "f32"))


def unstated(c: DType) -> DType:
    """What the epilogue's own tensors are stored as where nothing is stated: like C, but a byte has
    too few digits for them."""
    return "f32" if c in NARROW else c


def computed_in(acc_type: DType, out: DType) -> DType:
    """What the epilogue computes in: the type of the accumulators, but f32 where accumulators are
    integers and what it stores is not."""
    return "f32" if acc_type == "i32" and out != "i32" else acc_type


def widest(dtype: DType) -> int:
    """Elements of the widest access."""
    return ACCESS // BYTES[dtype]


def widths(dtype: DType) -> tuple[int, ...]:
    """The widths of wide accesses, in elements: 2 and on, as long as 16 bytes hold them."""
    return tuple(width for width in (2, 4, 8, 16) if width <= widest(dtype))


@record
class Types:
    """What the operands and the result of a GEMM are stored as, and what its accumulators are kept
    in."""

    a: DType = "f32"
    b: DType = "f32"
    c: DType = "f32"
    acc: DType = "f32"


SINGLE = Types()
