"""An epilogue computed over whole matrices."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gemmgen.interpreter.operators import (
    ARITHMETIC,
    COMPARE,
    FUNCTIONS,
    Floats,
    Real,
    Value,
    divide,
    invert,
    negate,
)
from gemmgen.ir.expr import Binary, Call, Element, Expr, Float, Int, Select, Unary, Var, Wide

ROUNDED = frozenset({"exp", "erf", "tanh", "sigmoid", "silu", "gelu", "gelu_tanh", "sqrt"})
"""Functions whose steps round: where f32 holds the exact value, it need not be the computed one."""
FINEST = 2.0**-10
"""A number of an epilogue that is no multiple of this counts as one that products round."""


def rounds(expr: Expr) -> bool:
    """May a step of the epilogue round on its way to a value that f32 holds?"""
    match expr:
        case Binary("/"):
            return True
        case Call(function):
            return function in ROUNDED
        case Float(value):
            return value % FINEST != 0
        case _:
            return False


def evaluate(
    expr: Expr,
    names: Mapping[str, Real],
    elements: Mapping[str, Floats],
    precision: type[np.float32] | type[np.float64],
) -> Value:
    """An epilogue over whole matrices, every number in ``precision``.

    ``names`` gives the variables; ``elements`` the tensors, each in a shape that broadcasts to the
    result's.  Both sides of a ``where`` are computed: nothing is out of range here.
    """

    def of(part: Expr) -> Value:
        return evaluate(part, names, elements, precision)

    match expr:
        case Int(value) | Float(value):
            return precision(value)
        case Var(name):
            return names[name]
        case Element(buffer, _):
            return elements[buffer]
        case Binary(op, left, right):
            return _binary(op, of(left), of(right))
        case Unary("-", operand):
            return negate(of(operand))
        case Unary(_, operand):
            return invert(of(operand))
        case Select(condition, yes, no):
            return np.where(of(condition), of(yes), of(no))
        case Call(function, arguments):
            return FUNCTIONS[function](*(of(argument) for argument in arguments))
        case Wide(operand):
            return of(operand)


def _binary(op: str, left: Value, right: Value) -> Value:
    if op == "/":
        return divide(left, right)
    if op in ("&&", "||"):
        return np.logical_and(left, right) if op == "&&" else np.logical_or(left, right)
    return (ARITHMETIC | COMPARE)[op](left, right)
