"""Values of variables in a walk, and what is not known of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gemmgen.base.record import record
from gemmgen.ir.expr import Binary, Call, Element, Expr, Float, Int, Select, Unary, Var, Wide


@record
class Unknown:
    """A value that depends on these names, which a walk does not know."""

    names: frozenset[str]


Value = int | Unknown


def _quotient(a: int, b: int) -> int:
    """Division as in C: toward zero."""
    found = abs(a) // abs(b)
    return found if (a < 0) == (b < 0) else -found


_OPERATIONS: Mapping[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": _quotient,
    "%": lambda a, b: a - b * _quotient(a, b),
    "^": lambda a, b: a ^ b,
    "<<": lambda a, b: a << b,
    "<": lambda a, b: int(a < b),
    "<=": lambda a, b: int(a <= b),
    ">": lambda a, b: int(a > b),
    ">=": lambda a, b: int(a >= b),
    "==": lambda a, b: int(a == b),
    "!=": lambda a, b: int(a != b),
}


def evaluate(expr: Expr, values: Mapping[str, Value]) -> Value:
    """The value of an index expression, as C computes it; a truth is 0 or 1."""
    match expr:
        case Int(value):
            return value
        case Var(name):
            return values.get(name, Unknown(frozenset((name,))))
        case Wide(operand):
            return evaluate(operand, values)
        case Unary(op, operand):
            found = evaluate(operand, values)
            if isinstance(found, Unknown):
                return found
            return -found if op == "-" else int(not found)
        case Select(condition, yes, no):
            found = evaluate(condition, values)
            return found if isinstance(found, Unknown) else evaluate(yes if found else no, values)
        case Binary("&&" | "||" as op, left, right):
            first = evaluate(left, values)
            if isinstance(first, Unknown):
                return first
            return int(op == "||") if bool(first) == (op == "||") else evaluate(right, values)
        case Binary(op, left, right):
            return _both(op, evaluate(left, values), evaluate(right, values))
        case Call("uniform", (operand,)):  # a value that a warp's lanes have in common
            return evaluate(operand, values)
        case Call(function, _):
            return Unknown(frozenset((function,)))
        case Element(buffer, _):
            return Unknown(frozenset((buffer,)))
        case Float():
            return Unknown(frozenset((repr(expr),)))


def _both(op: str, left: Value, right: Value) -> Value:
    if isinstance(left, Unknown) or isinstance(right, Unknown):
        unknown = (each.names for each in (left, right) if isinstance(each, Unknown))
        return Unknown(frozenset[str]().union(*unknown))
    return _OPERATIONS[op](left, right)
