"""From an element's type in memory to the type that sums are computed in, and back.

f16 and bf16 are 16 raw bits in memory, shared memory and staging registers, so that tiles are
copied as they are.  A value is converted when it is read for arithmetic (into a fragment, or by a
multiply-add or an epilogue that reads memory itself), and a result once, when it is stored.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar, cast

from gemmgen.ir.control import Define
from gemmgen.ir.dtypes import HALVES, DType
from gemmgen.ir.expr import Call, Expr, Float, Int
from gemmgen.ir.parts import rebuilt

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
    return Int(0) if dtype in HALVES else Float(0.0)


def computable(element: Expr, dtype: DType) -> Expr:
    """An element of ``dtype`` as a number to compute with."""
    return Call(f"from_{dtype}", (element,)) if dtype in HALVES else element


def storable(value: Expr, dtype: DType) -> Expr:
    """A computed number as an element of ``dtype``, rounded to the nearest, ties to even."""
    return Call(f"to_{dtype}", (value,)) if dtype in HALVES else value


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
