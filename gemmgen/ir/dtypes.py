"""Element types: what an element takes in memory, and what sums are computed in."""

from __future__ import annotations

from typing import Literal

from gemmgen.base.record import record

DType = Literal["f32", "f64", "f16", "bf16"]
"""IEEE 754 binary32, binary64 and binary16, and bfloat16: the upper half of a binary32."""

BYTES: dict[DType, int] = {"f32": 4, "f64": 8, "f16": 2, "bf16": 2}
"""What an element takes in memory."""

ACCESS = 16
"""Bytes of the widest access."""

HALVES: tuple[DType, ...] = ("f16", "bf16")
"""Types that a kernel stores as 16 raw bits, and computes with after a conversion."""


def widest(dtype: DType) -> int:
    """Elements of the widest access."""
    return ACCESS // BYTES[dtype]


def widths(dtype: DType) -> tuple[int, ...]:
    """The widths of wide accesses, in elements: 2 and on, as long as 16 bytes hold them."""
    return tuple(width for width in (2, 4, 8) if width <= widest(dtype))


@record
class Types:
    """What the operands and the result of a GEMM are stored as, and what its sums are kept in."""

    a: DType = "f32"
    b: DType = "f32"
    c: DType = "f32"
    acc: DType = "f32"


SINGLE = Types()
