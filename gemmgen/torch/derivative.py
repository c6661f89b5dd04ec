"""Derivatives of epilogues: the gradients of ``acc`` and of the tensors that they read, from C's.

Reverse mode: ``adjoints`` walks the expression once from its root, with the gradient of the current
part as an expression.  A mask is a ``where`` around that gradient, not a factor, so that an
infinite gradient of the branch that was not taken is excluded.  At kinks the rules are PyTorch's:
relu has 0 at 0, abs 0 at 0, min and max halve the gradient between equal arguments, clamp passes
it at its bounds.  Comparisons, conditions and ``round`` pass none.
"""

from __future__ import annotations

import math
from functools import cache
from typing import get_args

from gemmgen.ir.expr import (
    Binary,
    Call,
    CompareOp,
    Element,
    Expr,
    Float,
    Int,
    LogicOp,
    Select,
    Unary,
    Var,
    Wide,
    children,
    rebuild,
)
from gemmgen.ir.exprreader import read_expression
from gemmgen.ir.textcursor import Cursor

ZERO = Float(0.0)
ROOT_2_PI = math.sqrt(2 / math.pi)
NORMAL = f"0.5 * (1.0 + erf(x * {1 / math.sqrt(2)}))"
DENSITY = f"{1 / math.sqrt(2 * math.pi)} * exp(-0.5 * x * x)"
"""The normal distribution's function and its density, at x."""
TANH = f"tanh({ROOT_2_PI} * (x + 0.044715 * x * x * x))"
"""gelu_tanh(x) is x / 2 * (1 + TANH)."""
RULES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys((*get_args(CompareOp), *get_args(LogicOp)), ()),
    "+": ("g", "g"),
    "-": ("g", "-g"),
    "*": ("g * y", "g * x"),
    "/": ("g / y", "-(g * (x / y / y))"),
    "relu": ("where(x <= 0.0, 0.0, g)",),
    "abs": ("where(x > 0.0, g, where(x < 0.0, -g, 0.0))",),
    "min": (
        "where(x > y, 0.0, where(x == y, 0.5 * g, g))",
        "where(x < y, 0.0, where(x == y, 0.5 * g, g))",
    ),
    "max": (
        "where(x < y, 0.0, where(x == y, 0.5 * g, g))",
        "where(x > y, 0.0, where(x == y, 0.5 * g, g))",
    ),
    "clamp": (
        "where(x >= y && x <= z, g, 0.0)",
        "where(y < z && x < y, g, 0.0)",
        "where(x > z || z < y, g, 0.0)",
    ),
    "round": (),
    "exp": ("g * exp(x)",),
    "sqrt": ("g * (0.5 / sqrt(x))",),
    "tanh": ("g * (1.0 - tanh(x) * tanh(x))",),
    "erf": (f"g * ({2 / math.sqrt(math.pi)} * exp(-(x * x)))",),
    "sigmoid": ("g * (sigmoid(x) * (1.0 - sigmoid(x)))",),
    "silu": ("g * (sigmoid(x) * (1.0 + x * (1.0 - sigmoid(x))))",),
    "gelu": (f"g * ({NORMAL} + x * ({DENSITY}))",),
    "gelu_tanh": (
        f"g * (0.5 * (1.0 + {TANH}) + 0.5 * x * (1.0 - {TANH} * {TANH})"
        f" * ({ROOT_2_PI} * (1.0 + {3 * 0.044715} * x * x)))",
    ),
}
"""The gradients of the arguments x, y, z of an operator or a function, if that of its value is g;
none for one without gradients."""


class NoDerivative(Exception):
    """An expression has a function without a derivative rule; the message names it."""


def adjoints(expr: Expr, seed: Expr) -> dict[str, Expr]:
    """The gradient of each variable and each tensor that ``expr`` reads, by name.

    ``seed`` is the gradient of ``expr``'s value.  Variables without a gradient (of a condition) are
    left out.  The gradient of a tensor is that of the element read; the caller sums it over the
    letters that the tensor lacks.  Raises ``NoDerivative``.
    """
    found: dict[str, Expr] = {}
    _descend(expr, seed, found)
    return found


def _descend(expr: Expr, seed: Expr, found: dict[str, Expr]) -> None:
    match expr:
        case Int() | Float() | Unary("!"):
            return
        case Var(name) | Element(name, _):
            found[name] = plus(found[name], seed) if name in found else seed
        case Wide(operand):
            _descend(operand, seed, found)
        case Unary(_, operand):
            _descend(operand, negative(seed), found)
        case Binary(name, left, right):
            _descend_arguments(name, (left, right), seed, found)
        case Call(name, arguments):
            _descend_arguments(name, arguments, seed, found)
        case Select(condition, yes, no):
            _descend(yes, where(condition, seed, ZERO), found)
            _descend(no, where(condition, ZERO, seed), found)


def _descend_arguments(
    name: str, arguments: tuple[Expr, ...], seed: Expr, found: dict[str, Expr]
) -> None:
    """As ``_descend``, into the arguments of an operator or a function."""
    if name not in RULES:
        raise NoDerivative(f"{name} has no derivative rule")
    values = {"g": seed, **dict(zip("xyz", arguments, strict=False))}
    if RULES[name]:
        for part, rule in zip(arguments, RULES[name], strict=True):
            _descend(part, _filled(_read(rule), values), found)


@cache
def _read(rule: str) -> Expr:
    return read_expression(Cursor(rule, 1))


def _filled(rule: Expr, values: dict[str, Expr]) -> Expr:
    """The expression of a rule with ``values`` for its names, simplified."""
    if isinstance(rule, Var):
        return values[rule.name]
    expr = rebuild(rule, tuple(_filled(part, values) for part in children(rule)))
    match expr:
        case Binary("+", left, right):
            return plus(left, right)
        case Binary("-", left, right):
            return left if is_zero(right) else expr
        case Binary("*", left, right):
            return times(left, right)
        case Binary("/", left, right):
            return ZERO if is_zero(left) else left if is_one(right) else expr
        case Unary("-", operand):
            return negative(operand)
        case Select(condition, yes, no):
            return where(condition, yes, no)
        case _:
            return expr


def is_zero(expr: Expr) -> bool:
    return isinstance(expr, Int | Float) and expr.value == 0


def is_one(expr: Expr) -> bool:
    return isinstance(expr, Int | Float) and expr.value == 1


def plus(left: Expr, right: Expr) -> Expr:
    if is_zero(left):
        return right
    return left if is_zero(right) else left + right


def times(left: Expr, right: Expr) -> Expr:
    """A product; it is 0 if either factor is the literal 0."""
    if is_zero(left) or is_zero(right):
        return ZERO
    if is_one(left):
        return right
    return left if is_one(right) else left * right


def negative(expr: Expr) -> Expr:
    match expr:
        case Int(value) | Float(value):
            return Float(-float(value)) if value else ZERO
        case Unary("-", operand):
            return operand
        case _:
            return Unary("-", expr)


def where(condition: Expr, yes: Expr, no: Expr) -> Expr:
    return yes if yes == no else Select(condition, yes, no)
