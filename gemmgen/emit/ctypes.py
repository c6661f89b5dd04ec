"""The C types of elements: what they are stored as, and what moves several of them at once."""

from __future__ import annotations

from gemmgen.ir.atoms import ATOMS, Atom, Product
from gemmgen.ir.dtypes import BYTES, DTYPES, RAW, DType

STORED: dict[DType, str] = {name: traits.stored for name, traits in DTYPES.items()}
"""What an element is in memory; f16, bf16, e4m3 and e5m2 are raw bits: a kernel includes no
header."""

REGISTERS: dict[DType, int] = {"f16": 8, "bf16": 4, "f32": 8}
"""32-bit registers that a lane gives to a fragment; of f16 the hardware may hold elements twice."""


def fragment_type(dtype: DType) -> str:
    """What a register of a fragment is: a sum, or bits of operands."""
    return "float" if dtype == "f32" else "unsigned"


def register_type(dtype: DType) -> str:
    """What a register of an operand is whose lanes hold known elements: bits of several, or one."""
    return "double" if dtype == "f64" else "unsigned"


def product_name(atom: Atom, types: Product, n: int | None = None) -> str:
    """What an instruction of tensor cores, of ``n`` columns or an atom's, and its operands' types
    are called."""
    traits = ATOMS[atom]
    return "_".join((traits.shape_of(n or traits.n), *dict.fromkeys(types[:2])))


def load_suffix(dtype: DType, transposed: bool) -> str:
    """What the name of a load of matrices ends with: f32 is not rounded, as tf32 is."""
    return "_trans" if transposed else "_whole" if dtype == "f32" else ""


_OF_WORDS = {2: "unsigned short", 4: "unsigned", 8: "uint2", 16: "uint4"}


def vector_type(dtype: DType, width: int) -> str:
    """What moves ``width`` neighbouring elements in one access: ``float4``, ``uint2``."""
    if dtype not in RAW and BYTES[dtype] >= 4:
        return f"{STORED[dtype]}{width}"
    return _OF_WORDS[width * BYTES[dtype]]
