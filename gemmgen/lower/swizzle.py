"""The column at which a swizzled tile keeps an element: ``column ^ row / every % by * chunk``.

What is known to be a multiple of the swizzle's period stands outside the ``^``, which leaves it
alone: ``(thread_m ^ ...) + reg_m * LM``.  A loop's unrolled part is then a constant of an address.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import gcd

from gemmgen.ir.expr import Binary, Expr, Int, Var
from gemmgen.ir.nodes import Swizzle
from gemmgen.ir.simplify import add, div, mod, mul


@dataclass(frozen=True)
class Known:
    """What is known of a kernel's names: the values of constants; of variables what they are
    multiples of, and what they are smaller than."""

    values: Mapping[str, int]
    steps: Mapping[str, int] = field(default_factory=dict[str, int])
    below: Mapping[str, int] = field(default_factory=dict[str, int])


def swizzled(swizzle: Swizzle, row: Expr, rows: int, column: Expr, known: Known) -> Expr:
    """``column`` of ``row``, one of ``rows``, permuted."""
    pattern = div(_without_rest(row, swizzle.every, known), Int(swizzle.every))
    if rows > swizzle.every * swizzle.by:
        pattern = mod(pattern, Int(swizzle.by))
    pattern = mul(pattern, Int(swizzle.chunk))
    if isinstance(pattern, Int) and isinstance(column, Int):
        return Int(column.value ^ pattern.value)
    whole = [part for part in _addends(column) if divisor(part, known) % swizzle.period == 0]
    rest = [part for part in _addends(column) if part not in whole]
    inside: Expr = add(*rest)
    moved = pattern if inside == Int(0) else inside
    if inside != Int(0) and pattern != Int(0):
        moved = Binary("^", inside, pattern)
    return add(moved, *whole)


def _without_rest(row: Expr, every: int, known: Known) -> Expr:
    """``row``, or less where that has the same quotient by ``every``: a sum's only part that is no
    multiple of it, if that is smaller."""
    rest = [part for part in _addends(row) if divisor(part, known) % every]
    if len(rest) != 1 or not isinstance(rest[0], Var):
        return row
    if known.below.get(rest[0].name, every + 1) > every:
        return row
    return add(*(part for part in _addends(row) if part != rest[0]))


def _addends(expr: Expr) -> tuple[Expr, ...]:
    if isinstance(expr, Binary) and expr.op == "+":
        return (*_addends(expr.left), *_addends(expr.right))
    return (expr,)


def divisor(expr: Expr, known: Known) -> int:
    """A number that divides ``expr`` whatever its variables are; of 0 it is 0."""
    value = evaluated(expr, known.values)
    if value is not None:
        return value
    match expr:
        case Var(name):
            return known.steps.get(name, 1)
        case Binary("*", left, right):
            return divisor(left, known) * divisor(right, known)
        case Binary("+", left, right):
            return gcd(divisor(left, known), divisor(right, known))
        case _:
            return 1


def evaluated(expr: Expr, values: Mapping[str, int]) -> int | None:
    """The value of an expression of constants; None where it has variables."""
    match expr:
        case Int(value):
            return value
        case Var(name):
            return values.get(name)
        case Binary("*" | "/" as op, left, right):
            first, second = evaluated(left, values), evaluated(right, values)
            if first is None or second is None:
                return None
            return first * second if op == "*" else first // second
        case _:
            return None
