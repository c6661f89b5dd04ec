"""The C types of elements: what they are stored as, and what moves several of them at once."""

from __future__ import annotations

from gemmgen.ir.dtypes import BYTES, DType

STORED: dict[DType, str] = {
    "f32": "float",
    "f64": "double",
    "f16": "unsigned short",
    "bf16": "unsigned short",
}
"""What an element is in memory; f16 and bf16 are raw bits, since a kernel includes no header."""

REGISTERS: dict[DType, int] = {"f16": 8, "bf16": 4, "f32": 8}
"""32-bit registers that a lane gives to a fragment; of f16 the hardware may hold elements twice."""


def fragment_type(dtype: DType) -> str:
    """What a register of a fragment is: a sum, or bits of operands."""
    return "float" if dtype == "f32" else "unsigned"


_OF_WORDS = {4: "unsigned", 8: "uint2", 16: "uint4"}


def vector_type(dtype: DType, width: int) -> str:
    """What moves ``width`` neighbouring elements in one access: ``float4``, ``uint2``."""
    if dtype in ("f32", "f64"):
        return f"{STORED[dtype]}{width}"
    return _OF_WORDS[width * BYTES[dtype]]
