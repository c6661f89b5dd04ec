"""Expressions: the one small language of the epilogue and of lowered code.

The epilogue of a schedule (``relu(acc + bias[n])``), the index arithmetic of a lowered kernel and
its guards are all built from these frozen nodes.  ``emit`` prints them as C, ``interpreter``
evaluates them, ``exprtext`` prints and ``exprreader`` reads them.  Index arithmetic is over
non-negative integers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import attrgetter, is_
from typing import Any, Literal, cast

from gemmgen.base.record import record

ArithmeticOp = Literal["+", "-", "*", "/", "%", "^", "<<"]
CompareOp = Literal["<", "<=", ">", ">=", "==", "!="]
LogicOp = Literal["&&", "||"]
BinaryOp = ArithmeticOp | CompareOp | LogicOp

FUNCTIONS = {
    **dict.fromkeys(("relu", "gelu", "gelu_tanh", "silu", "sigmoid", "tanh"), 1),
    **dict.fromkeys(("exp", "erf", "sqrt", "abs", "round"), 1),
    **{"min": 2, "max": 2, "clamp": 3, "where": 3},
}
"""The functions of an epilogue, and how many arguments each takes."""


class ExprOperators:
    """``Var("m") * 4 + 1`` is the ``Binary`` that it says: an int is an ``Int``, ``/`` is C's.

    Nothing is simplified (``ir.simplify``).  Comparisons are written as nodes: ``==`` compares
    expressions in Python.
    """

    def __add__(self, other: Expr | int) -> Binary:
        return Binary("+", cast("Expr", self), _node(other))

    def __radd__(self, other: int) -> Binary:
        return Binary("+", Int(other), cast("Expr", self))

    def __sub__(self, other: Expr | int) -> Binary:
        return Binary("-", cast("Expr", self), _node(other))

    def __rsub__(self, other: int) -> Binary:
        return Binary("-", Int(other), cast("Expr", self))

    def __mul__(self, other: Expr | int) -> Binary:
        return Binary("*", cast("Expr", self), _node(other))

    def __rmul__(self, other: int) -> Binary:
        return Binary("*", Int(other), cast("Expr", self))

    def __truediv__(self, other: Expr | int) -> Binary:
        return Binary("/", cast("Expr", self), _node(other))

    def __mod__(self, other: Expr | int) -> Binary:
        return Binary("%", cast("Expr", self), _node(other))


def _node(operand: Expr | int) -> Expr:
    return Int(operand) if isinstance(operand, int) else operand


@record
class Int(ExprOperators):
    """An integer literal."""

    value: int


@record
class Float(ExprOperators):
    """A finite number in the accumulator's precision: in lowered code ``dtype`` says which."""

    value: float
    dtype: Literal["f32", "f64"] = "f32"


@record
class Var(ExprOperators):
    """A name: an index, a loop variable, a local, a kernel parameter or a ``constexpr``."""

    name: str


@record
class Binary(ExprOperators):
    """``left op right``."""

    op: BinaryOp
    left: Expr
    right: Expr


@record
class Unary(ExprOperators):
    """``-operand`` or ``!operand``."""

    op: Literal["-", "!"]
    operand: Expr


@record
class Select(ExprOperators):
    """``condition ? yes : no``; written ``where(condition, yes, no)`` in a schedule.

    Only the chosen side is evaluated, so it may guard a read.
    """

    condition: Expr
    yes: Expr
    no: Expr


@record
class Call(ExprOperators):
    """A function of the epilogue language (``relu``, ``exp``, ...), or ``fmaf`` and ``float``."""

    function: str
    arguments: tuple[Expr, ...]


@record
class Element(ExprOperators):
    """One element of a buffer: ``bias[n]``, ``A_shared[stage][k][m]``.

    Before lowering the indices are those of the tensor; in lowered code a global buffer has one
    flat index, shared and register arrays have one index per dimension.
    """

    buffer: str
    indices: tuple[Expr, ...]


@record
class Wide(ExprOperators):
    """``operand`` as a 64-bit integer, so that a product with it cannot wrap."""

    operand: Expr


Expr = Int | Float | Var | Binary | Unary | Select | Call | Element | Wide

_CHILDREN: dict[type, Callable[[Any], tuple[Expr, ...]]] = {
    **dict.fromkeys((Int, Float, Var), lambda _: ()),
    Binary: attrgetter("left", "right"),
    **dict.fromkeys((Unary, Wide), lambda expr: (expr.operand,)),
    Select: attrgetter("condition", "yes", "no"),
    Call: attrgetter("arguments"),
    Element: attrgetter("indices"),
}


def children(expr: Expr) -> tuple[Expr, ...]:
    """The direct subexpressions of ``expr``, left to right."""
    return _CHILDREN[expr.__class__](expr)


def rebuild(expr: Expr, parts: tuple[Expr, ...]) -> Expr:
    """``expr`` with its direct subexpressions replaced by ``parts``."""
    if all(map(is_, children(expr), parts)):
        return expr
    match expr:
        case Binary(op, _, _):
            return Binary(op, parts[0], parts[1])
        case Unary(op, _):
            return Unary(op, parts[0])
        case Wide(_):
            return Wide(parts[0])
        case Select(_, _, _):
            return Select(parts[0], parts[1], parts[2])
        case Call(function, _):
            return Call(function, parts)
        case Element(buffer, _):
            return Element(buffer, parts)
        case Int() | Float() | Var():
            return expr


def walk(expr: Expr) -> Iterator[Expr]:
    """``expr`` and all its subexpressions, outermost first."""
    left = [expr]
    while left:
        part = left.pop()
        yield part
        left.extend(reversed(children(part)))


def transform(expr: Expr, rule: Callable[[Expr], Expr | None]) -> Expr:
    """Rewrites top-down: if ``rule`` returns a node, it replaces the subtree."""
    replacement = rule(expr)
    if replacement is not None:
        return replacement
    return rebuild(expr, tuple(transform(part, rule) for part in children(expr)))
