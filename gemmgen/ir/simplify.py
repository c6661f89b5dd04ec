"""Trivial identities of index arithmetic, so that emitted text shows none of them."""

from __future__ import annotations

from collections.abc import Callable

from gemmgen.ir.expr import Binary, BinaryOp, Expr, Int, Select, Wide, children, rebuild

ZERO = Int(0)


def simplify(expr: Expr) -> Expr:
    """``x + 0``, ``x * 1``, ``x / 1``, ``0 / x``, ``x % 1`` and arithmetic on two literals; named
    constants stay."""
    parts = children(expr)
    if not parts:
        return expr
    expr = rebuild(expr, tuple(map(simplify, parts)))
    if isinstance(expr, Binary):
        simpler = _identity(expr.op, expr.left, expr.right)
        return expr if simpler is None else simpler
    return expr


_FOLDED: dict[str, Callable[[int, int], int]] = {
    "+": int.__add__,
    "-": int.__sub__,
    "*": int.__mul__,
    "/": int.__floordiv__,
    "%": int.__mod__,
    "^": int.__xor__,
    "<<": int.__lshift__,
}


def _binary(op: BinaryOp, left: Expr, right: Expr) -> Expr:
    simpler = _identity(op, left, right)
    return Binary(op, left, right) if simpler is None else simpler


def _identity(op: BinaryOp, left: Expr, right: Expr) -> Expr | None:
    """What ``left op right`` is without its operator; None where it needs it."""
    if not (isinstance(left, Int) or isinstance(right, Int)):
        return None
    match op, left, right:
        case _, Int(first), Int(second) if op in _FOLDED:
            return Int(_FOLDED[op](first, second))
        case "+", Int(0), other:
            return other
        case ("+" | "-" | "<<"), other, Int(0):
            return other
        case "*", Int(1), other:
            return other
        case ("^", other, Int(0)) | ("^", Int(0), other):
            return other
        case ("*" | "/"), other, Int(1):
            return other
        case (("*" | "/"), Int(0), _) | ("*", _, Int(0)) | ("%", _, Int(1)):
            return ZERO
        case _:
            return None


def add(*parts: Expr) -> Expr:
    """The sum of ``parts``, without zeros and grouped from the left."""
    total: Expr = ZERO
    for each in parts:
        for part in _addends(each):
            total = _binary("+", total, simplify(part))
    return total


def _addends(term: Expr) -> tuple[Expr, ...]:
    if isinstance(term, Binary) and term.op == "+":
        return (*_addends(term.left), term.right)
    return (term,)


def _simplified(op: BinaryOp) -> Callable[[Expr, Expr], Expr]:
    return lambda left, right: simplify(Binary(op, left, right))


sub, mul, div = _simplified("-"), _simplified("*"), _simplified("/")
mod, xor = _simplified("%"), _simplified("^")


def less(left: Expr, right: Expr) -> Expr:
    return Binary("<", left, right)


def conjuncts(condition: Expr) -> tuple[Expr, ...]:
    """The conditions that ``condition`` joins by ``&&``."""
    match condition:
        case Binary("&&", left, right):
            return (*conjuncts(left), *conjuncts(right))
        case _:
            return (condition,)


def all_of(*conditions: Expr | None) -> Expr | None:
    """The conjunction of the conditions there are; None for none."""
    total: Expr | None = None
    for condition in conditions:
        if condition is not None:
            total = condition if total is None else Binary("&&", total, condition)
    return total


def choose(condition: Expr | None, yes: Expr, no: Expr) -> Expr:
    """``condition ? yes : no``; ``yes`` if there is no condition."""
    return yes if condition is None else Select(condition, yes, no)


def wide_product(row: Expr, pitch: Expr) -> Expr:
    """``(long long)row * pitch``: a row's offset, which may not fit in 32 bits."""
    if row == ZERO:
        return ZERO
    return Wide(row) * pitch
