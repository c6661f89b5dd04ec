"""From an element's type in memory to the type that accumulators are computed in, and back.

f16, bf16, e4m3 and e5m2 are raw bits in memory, shared memory and staging registers, so that tiles
are copied as they are.  A value is converted when it is read for arithmetic (into a fragment, or by
a multiply-add or an epilogue that reads memory itself), and a result once, when it is stored. tf32
is f32 there, and rounded where halves are converted.  Integers are C's int in arithmetic that is of
integers throughout, and wraps.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar, cast

from gemmgen.ir.control import Define, DefineKind
from gemmgen.ir.dtypes import INTEGERS, RAW, ROUNDED, DType
from gemmgen.ir.expr import Call, Expr, Float, Int
from gemmgen.ir.traversal import rebuilt

T = TypeVar("T")

DOUBLE = {
    "fmaf": "fma",
    "float": "double",
    "shuffle_xor": "shuffle_xor_f64",
    **{name: f"{name}_f64" for name in ("exp", "tanh", "erf", "sqrt", "abs", "round")},
}
"""What the functions of f32 are called in f64."""


def zero(dtype: DType) -> Expr:
    """Zero as an element of ``dtype`` in memory."""
    return Int(0) if dtype in (*RAW, *INTEGERS) else Float(0.0)


def number(value: float, numbers: DType) -> Expr:
    """A number of arithmetic in ``numbers``."""
    return Int(int(value)) if numbers == "i32" else Float(float(value))


def kind(numbers: DType) -> DefineKind:
    """Of a variable that holds a value of arithmetic in ``numbers``."""
    return "i32" if numbers == "i32" else "float"


def computable(element: Expr, dtype: DType, numbers: DType = "f32") -> Expr:
    """An element of ``dtype`` as a number to compute with in ``numbers``."""
    if dtype in INTEGERS:
        return element if numbers == "i32" else Call("float", (element,))
    return Call(f"from_{dtype}", (element,)) if dtype in (*RAW, *ROUNDED) else element


def storable(value: Expr, dtype: DType) -> Expr:
    """A computed number as an element of ``dtype``, rounded to the nearest, ties to even; as an
    i8, e4m3 or e5m2 it saturates."""
    return Call(f"to_{dtype}", (value,)) if dtype in (*RAW, "i8") else value


def multiply_add(a: Expr, b: Expr, c: Expr, numbers: DType) -> Expr:
    """``a * b + c``, rounded once, or wrapped."""
    return Call("mad" if numbers == "i32" else "fmaf", (a, b, c))


def plus(a: Expr, b: Expr, numbers: DType) -> Expr:
    """``a + b``."""
    return Call("mad", (b, Int(1), a)) if numbers == "i32" else a + b


def in_double(node: T) -> T:
    """Lowered code with its literals, functions and variables of f32 in double precision."""
    match node:
        case Float(value):
            return cast(T, Float(value, "f64"))
        case Call(function, arguments):
            return cast(T, Call(DOUBLE.get(function, function), in_double(arguments)))
        case Define(kind="float"):
            return cast(T, replace(node, kind="double", value=in_double(node.value)))
        case _:
            return rebuilt(node, in_double)
