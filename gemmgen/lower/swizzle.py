"""The column at which a swizzled tile keeps an element: ``column ^ row / every % by * chunk``.

What is known to be a multiple of the swizzle's period is kept outside the ``^``, which leaves it
alone: ``(thread_m ^ ...) + reg_m * LM``.  Of the variables of unrolled loops the part within a
chunk does too: ``((k / 4) ^ ...) * 4 + k % 4``.  Both are then constants of an address.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd, inf

from gemmgen.base.record import record
from gemmgen.ir.buffers import Swizzle
from gemmgen.ir.expr import Binary, Expr, Int, Var, walk
from gemmgen.ir.simplify import add, div, mod, mul, xor


@record
class Known:
    """What is known of a kernel's names: the values of constants; of variables what they are
    multiples of, and what they are smaller than; ``unrolled`` are those of unrolled loops."""

    values: Mapping[str, int]
    steps: Mapping[str, int]
    below: Mapping[str, int]
    unrolled: frozenset[str]


def in_atom_column(column: Expr, atom_width: Var, known: Known) -> tuple[Expr, Expr]:
    """The number of the atom column that ``column`` is in, and where it is in its row there."""
    size = known.values[atom_width.name]
    whole = [part for part in _addends(column) if divisor(part, known) % size == 0]
    rest = add(*(part for part in _addends(column) if part not in whole))
    before = add(*(div(part, atom_width) for part in whole))
    if _bound(rest, known) <= size:
        return before, rest
    return add(before, div(rest, atom_width)), mod(rest, atom_width)


def swizzled(swizzle: Swizzle, row: Expr, rows: int, column: Expr, known: Known) -> Expr:
    """``column`` of ``row``, one of ``rows``, permuted."""
    chunk = Int(swizzle.chunk)
    pattern = div(_significant(row, swizzle, known), Int(swizzle.every))
    if rows > swizzle.every * swizzle.by:
        pattern = mod(pattern, Int(swizzle.by))
    whole = [part for part in _addends(column) if divisor(part, known) % swizzle.period == 0]
    parts = [part for part in _addends(column) if part not in whole]
    odd = [part for part in parts if divisor(part, known) % swizzle.chunk]
    if odd and all(_variables(part, known) <= known.unrolled for part in odd):
        even = (div(part, chunk) for part in parts if part not in odd)
        moved = mul(xor(add(*even, div(add(*odd), chunk)), pattern), chunk)
        return add(moved, mod(add(*odd), chunk), *whole)
    return add(xor(add(*parts), mul(pattern, chunk)), *whole)


def _significant(row: Expr, swizzle: Swizzle, known: Known) -> Expr:
    """``row`` without the parts that make no difference to ``row / every % by``: multiples of both,
    and what is smaller than ``every`` next to multiples of it."""
    every = swizzle.every
    parts = [p for p in _addends(row) if divisor(p, known) % (every * swizzle.by)]
    rest = [p for p in parts if divisor(p, known) % every]
    if len(rest) == 1 and _bound(rest[0], known) <= every:
        parts.remove(rest[0])
    return add(*parts)


def _bound(expr: Expr, known: Known) -> float:
    """What a part of an index is smaller than."""
    match expr:
        case Int(value):
            return value + 1
        case Var(name):
            return known.below.get(name, inf)
        case Binary("%", _, right):
            value = evaluated(right, known.values)
            return inf if value is None else value
        case _:
            return inf


def _variables(expr: Expr, known: Known) -> set[str]:
    return {e.name for e in walk(expr) if isinstance(e, Var)} - known.values.keys()


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
    """The value of an expression of constants; None if it has variables."""
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
