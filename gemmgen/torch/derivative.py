"""Derivatives of epilogues: the gradients of ``acc`` and of the tensors that they read, from C's.

Reverse mode: ``adjoints`` walks the expression once from its root, with the gradient of the current
part as an expression.  A mask is a ``where`` around that gradient, not a factor, so that an
infinite gradient of the branch that was not taken is excluded.  At kinks the rules are PyTorch's:
relu has 0 at 0, abs 0 at 0, min and max halve the gradient between equal arguments, clamp passes
it at its bounds.  Comparisons, conditions and ``round`` pass none.
"""

from __future__ import annotations

import math
from collections.abc import Callable

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
)

ZERO, HALF, ONE = Float(0.0), Float(0.5), Float(1.0)
ROOT_HALF = 1 / math.sqrt(2)
BELL = 1 / math.sqrt(2 * math.pi)
"""The normal distribution's density at 0."""
ROOT_2_PI = math.sqrt(2 / math.pi)
CUBIC = 0.044715
"""Constants of gelu_tanh(x) = x/2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))."""


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
        case Binary(op, left, right):
            for part, gradient in zip((left, right), _binary(op, left, right, seed), strict=True):
                if gradient is not None:
                    _descend(part, gradient, found)
        case Select(condition, yes, no):
            _descend(yes, where(condition, seed, ZERO), found)
            _descend(no, where(condition, ZERO, seed), found)
        case Call(function, arguments):
            if function not in RULES:
                raise NoDerivative(f"{function} has no derivative rule")
            gradients = RULES[function](seed, *arguments)
            for part, gradient in zip(arguments, gradients, strict=True):
                if gradient is not None:
                    _descend(part, gradient, found)


def _binary(op: str, left: Expr, right: Expr, seed: Expr) -> tuple[Expr | None, Expr | None]:
    match op:
        case "+":
            return seed, seed
        case "-":
            return seed, negative(seed)
        case "*":
            return times(seed, right), times(seed, left)
        case "/":
            return over(seed, right), negative(times(seed, over(over(left, right), right)))
        case "%" | "^":
            raise NoDerivative(f"{op} has no derivative rule")
        case _:
            return None, None  # comparisons and logic


Rule = Callable[..., tuple[Expr | None, ...]]
"""A function from the gradient of a function's value, and its arguments, to their gradients."""


def _slope(derivative: Callable[[Expr], Expr]) -> Rule:
    """The rule of a smooth function of one argument."""

    def rule(seed: Expr, x: Expr) -> tuple[Expr]:
        return (times(seed, derivative(x)),)

    return rule


def _flat(seed: Expr, x: Expr) -> tuple[None]:
    return (None,)


def _relu(seed: Expr, x: Expr) -> tuple[Expr]:
    return (where(compare("<=", x, ZERO), ZERO, seed),)


def _abs(seed: Expr, x: Expr) -> tuple[Expr]:
    below = where(compare("<", x, ZERO), negative(seed), ZERO)
    return (where(compare(">", x, ZERO), seed, below),)


def _extreme(beaten: CompareOp, beats: CompareOp) -> Rule:
    """The rule of max: if x is ``beaten`` (<) by y, y has the gradient, and x if it ``beats`` y."""

    def rule(seed: Expr, x: Expr, y: Expr) -> tuple[Expr, Expr]:
        shared = where(compare("==", x, y), times(HALF, seed), seed)
        first = where(compare(beaten, x, y), ZERO, shared)
        return first, where(compare(beats, x, y), ZERO, shared)

    return rule


def _clamp(seed: Expr, x: Expr, low: Expr, high: Expr) -> tuple[Expr, Expr, Expr]:
    inside = logic("&&", compare(">=", x, low), compare("<=", x, high))
    to_low = logic("&&", compare("<", low, high), compare("<", x, low))
    to_high = logic("||", compare(">", x, high), compare("<", high, low))
    return where(inside, seed, ZERO), where(to_low, seed, ZERO), where(to_high, seed, ZERO)


def _gelu_slope(x: Expr) -> Expr:
    """The normal distribution function at x, plus x times the density."""
    below = times(HALF, plus(ONE, call("erf", times(x, Float(ROOT_HALF)))))
    density = times(Float(BELL), call("exp", times(times(Float(-0.5), x), x)))
    return plus(below, times(x, density))


def _gelu_tanh_slope(x: Expr) -> Expr:
    cube = times(times(times(Float(CUBIC), x), x), x)
    t = call("tanh", times(Float(ROOT_2_PI), plus(x, cube)))
    inner = times(Float(ROOT_2_PI), plus(ONE, times(times(Float(3 * CUBIC), x), x)))
    bell = times(times(times(HALF, x), minus(ONE, times(t, t))), inner)
    return plus(times(HALF, plus(ONE, t)), bell)


def _sigmoid_slope(x: Expr) -> Expr:
    s = call("sigmoid", x)
    return times(s, minus(ONE, s))


def _silu_slope(x: Expr) -> Expr:
    s = call("sigmoid", x)
    return times(s, plus(ONE, times(x, minus(ONE, s))))


def _tanh_slope(x: Expr) -> Expr:
    t = call("tanh", x)
    return minus(ONE, times(t, t))


def _erf_slope(x: Expr) -> Expr:
    return times(Float(2 / math.sqrt(math.pi)), call("exp", negative(times(x, x))))


RULES: dict[str, Rule] = {
    "relu": _relu,
    "abs": _abs,
    "min": _extreme(">", "<"),
    "max": _extreme("<", ">"),
    "clamp": _clamp,
    "round": _flat,
    "exp": _slope(lambda x: call("exp", x)),
    "sqrt": _slope(lambda x: over(HALF, call("sqrt", x))),
    "tanh": _slope(_tanh_slope),
    "erf": _slope(_erf_slope),
    "sigmoid": _slope(_sigmoid_slope),
    "silu": _slope(_silu_slope),
    "gelu": _slope(_gelu_slope),
    "gelu_tanh": _slope(_gelu_tanh_slope),
}


def is_zero(expr: Expr) -> bool:
    return isinstance(expr, Int | Float) and expr.value == 0


def is_one(expr: Expr) -> bool:
    return isinstance(expr, Int | Float) and expr.value == 1


def plus(left: Expr, right: Expr) -> Expr:
    if is_zero(left):
        return right
    return left if is_zero(right) else Binary("+", left, right)


def minus(left: Expr, right: Expr) -> Expr:
    return left if is_zero(right) else Binary("-", left, right)


def times(left: Expr, right: Expr) -> Expr:
    """A product; with a literal 0 it is 0, whatever the other factor."""
    if is_zero(left) or is_zero(right):
        return ZERO
    if is_one(left):
        return right
    return left if is_one(right) else Binary("*", left, right)


def over(left: Expr, right: Expr) -> Expr:
    if is_zero(left):
        return ZERO
    return left if is_one(right) else Binary("/", left, right)


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


def call(function: str, *arguments: Expr) -> Expr:
    return Call(function, arguments)


def compare(op: CompareOp, left: Expr, right: Expr) -> Expr:
    return Binary(op, left, right)


def logic(op: LogicOp, left: Expr, right: Expr) -> Expr:
    return Binary(op, left, right)
