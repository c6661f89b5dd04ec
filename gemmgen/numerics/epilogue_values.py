"""An epilogue computed over whole matrices, by the operations of a library of arrays."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar, cast

import numpy as np

from gemmgen.base.record import record
from gemmgen.ir.expr import Binary, Call, Element, Expr, Float, Int, Select, Unary, Var, Wide
from gemmgen.numerics.operators import ARITHMETIC, COMPARE, FUNCTIONS, Value, divide, invert

V = TypeVar("V")


@record
class ElementArithmetic(Generic[V]):
    """The operations of an epilogue in a library; operators are Python's, except for conditions."""

    number: Callable[[float], V]
    call: Callable[[str, list[V]], V]
    """A function of the epilogue's by its name."""
    select: Callable[[V, V, V], V]
    conditions: Mapping[str, Callable[..., V]]
    """``!``, ``&&``, ``||``."""


def evaluate(
    expr: Expr, names: Mapping[str, V], elements: Mapping[str, V], arithmetic: ElementArithmetic[V]
) -> V:
    """The value of ``expr``; every step of it is a value of all elements.

    ``names`` gives the variables; ``elements`` the tensors, each in a shape that broadcasts to the
    result's.  Both sides of a ``where`` are computed: nothing is out of range here.
    """

    def of(part: Expr) -> V:
        return evaluate(part, names, elements, arithmetic)

    match expr:
        case Int(value) | Float(value):
            return arithmetic.number(value)
        case Var(name):
            return names[name]
        case Element(buffer, _):
            return elements[buffer]
        case Wide(operand):
            return of(operand)
        case Unary("-", operand):
            return cast(V, operator.neg(cast(Any, of(operand))))
        case Unary(op, operand):
            return arithmetic.conditions[op](of(operand))
        case Binary("&&" | "||" as op, left, right):
            return arithmetic.conditions[op](of(left), of(right))
        case Binary(op, left, right):
            return _OPERATORS[op](of(left), of(right))
        case Select(condition, yes, no):
            return arithmetic.select(of(condition), of(yes), of(no))
        case Call(function, arguments):
            return arithmetic.call(function, [of(argument) for argument in arguments])


_OPERATORS: dict[str, Callable[..., Any]] = {**ARITHMETIC, **COMPARE, "/": divide}


def in_numpy(
    precision: type[np.float32] | type[np.float64],
    call: Callable[[str, list[Value]], Value] = lambda function, arguments: cast(
        Value, FUNCTIONS[function](*arguments)
    ),
) -> ElementArithmetic[Value]:
    """NumPy's operations on numbers of ``precision``, each rounded."""
    conditions = {"!": invert, "&&": np.logical_and, "||": np.logical_or}
    return ElementArithmetic(precision, call, np.where, conditions)
