"""Expressions of a thread's code, evaluated for all threads at once.

Over 300 lines: a case for each kind of expression.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeGuard, cast

import numpy as np

from gemmgen.ir.expr import Binary, Call, Element, Expr, Float, Int, Select, Unary, Var, Wide
from gemmgen.ir.target import WARP
from gemmgen.numerics.operators import OF_INTS
from gemmgen.prove import (
    block_scales,
    conditions,
    data,
    element_accesses,
    integers,
    joined_totals,
    polynomials,
    products,
    scaled_products,
    term_totals,
)
from gemmgen.prove.conditions import Condition, Flag, Integer, Truth
from gemmgen.prove.data import (
    Apply,
    Data,
    IndexNumber,
    Number,
    ScalarArgument,
    TensorElement,
    TermTotals,
    Total,
    UnknownData,
)
from gemmgen.prove.integers import Unsupported
from gemmgen.prove.polynomials import Polynomial
from gemmgen.prove.state import (
    Binding,
    GlobalPlace,
    RegisterPlace,
    SharedPlace,
    Value,
    VariableSlot,
    WalkScope,
    WalkState,
    is_integer,
    under,
)
from gemmgen.prove.walk_context import WalkContext

CONDITIONS = (
    Truth,
    Flag,
    conditions.NotNegative,
    conditions.IsZero,
    conditions.All,
    conditions.AnyOf,
    conditions.Not,
    conditions.Multiple,
)

BITS = 32
LARGEST_SIDE = 64
"""Of a square whose places are exchanged."""


def value(context: WalkContext, state: WalkState, scope: WalkScope, expr: Expr) -> Value:
    """What ``expr`` is: an integer, a truth or a number; its accesses are checked."""
    return _evaluated(context, state, scope, expr)[0]


def integer(context: WalkContext, state: WalkState, scope: WalkScope, expr: Expr) -> Integer:
    found = value(context, state, scope, expr)
    if not is_integer(found):
        raise Unsupported("an index that is not an integer")
    return cast(Integer, found)


def form(context: WalkContext, state: WalkState, scope: WalkScope, expr: Expr) -> Polynomial:
    """An integer that is one form."""
    if isinstance(expr, Var):  # most often a variable of an unrolled loop
        known = scope.names.get(expr.name)
        if isinstance(known, Polynomial):
            return known
    found = integer(context, state, scope, expr)
    if not isinstance(found, Polynomial):
        raise Unsupported("an index that depends on a condition on sizes, other in each thread")
    return found


def truth(context: WalkContext, state: WalkState, scope: WalkScope, expr: Expr) -> Condition:
    found = value(context, state, scope, expr)
    if is_integer(found):  # as in C
        return conditions.negated(conditions.over_choices(cast(Integer, found), conditions.is_zero))
    if not isinstance(found, CONDITIONS):
        raise Unsupported("a condition on numbers")
    return found


def number(context: WalkContext, state: WalkState, scope: WalkScope, expr: Expr) -> Data:
    return as_data(value(context, state, scope, expr))


def as_data(found: Value) -> Data:
    if isinstance(found, Polynomial):
        return IndexNumber(found) if found.plain is None else Number(float(found.plain))
    if isinstance(found, (*CONDITIONS, conditions.ChosenInteger)):
        raise Unsupported("a truth among numbers")
    return found


def binding(scope: WalkScope, name: str) -> Binding:
    if name not in scope.names:
        raise Unsupported(f"the name {name}")
    return scope.names[name]


def located(context: WalkContext, state: WalkState, scope: WalkScope, element: Element) -> Binding:
    """The place of an element: a tensor, a shared or a register array with all indices given."""
    base = binding(scope, element.buffer)
    indices = tuple([form(context, state, scope, index) for index in element.indices])
    match base:
        case GlobalPlace(param, offset):
            (index,) = indices or (polynomials.ZERO,)
            return GlobalPlace(param, polynomials.add(offset, index))
        case SharedPlace(name, first, flat):
            return SharedPlace(name, _indices(first, flat, indices), True)
        case RegisterPlace(key, sizes, first, flat):
            return RegisterPlace(key, sizes, _indices(first, flat, indices), True)
        case _:
            raise Unsupported(f"an element of {element.buffer}")


def _indices(
    first: tuple[Polynomial, ...], flat: bool, more: tuple[Polynomial, ...]
) -> tuple[Polynomial, ...]:
    if not flat:
        return (*first, *more)
    if not more:
        return first
    (index,) = more
    return (*first[:-1], polynomials.add(first[-1], index)) if first else (index,)


def _evaluated(
    context: WalkContext, state: WalkState, scope: WalkScope, expr: Expr
) -> tuple[Value, bool]:
    """The value, and whether it is a 64-bit integer."""
    match expr:
        case Var(name):  # the most frequent ones come first
            found = binding(scope, name)
            if isinstance(found, VariableSlot):
                return state.slots[found.key], False
            return cast(Value, found), False
        case Element():
            place = located(context, state, scope, expr)
            if isinstance(place, GlobalPlace) and place.param.name in context.scale_tensors:
                parts = block_scales.divided_in(expr.indices[0])
                forms = [(form(context, state, scope, x), divisor) for x, divisor in parts]
                return block_scales.load(context, state, place, forms), False
            return element_accesses.load(context, state, place, 1)[0], False
        case Int(literal):
            return polynomials.fixed(literal), False
        case Float(literal):
            return Number(literal), False
        case Wide(operand):
            return _evaluated(context, state, scope, operand)[0], True
        case Select():
            return _select(context, state, scope, expr)
        case Binary("&&" | "||", _, _):
            return _logic(context, state, scope, expr), False
        case Binary():
            return _binary(context, state, scope, expr)
        case Unary(op, operand):
            return _unary(context, op, *_evaluated(context, state, scope, operand))
        case Call("uniform", (operand,)):
            return _of_first_lanes(*_evaluated(context, state, scope, operand))
        case Call(function, arguments) if function in OF_INTS:
            return _of_table(context, state, scope, function, arguments), False
        case Call(function, arguments) if function.startswith("shuffle_"):
            raise Unsupported("a number of another lane")
        case Call(function, arguments):
            own = [number(context, state, scope, each) for each in arguments]
            return _call(context, state, function, own), False


def _of_table(
    context: WalkContext,
    state: WalkState,
    scope: WalkScope,
    function: str,
    arguments: tuple[Expr, ...],
) -> Polynomial:
    """A function of a number and a side, which exchanges the places of each square of that side."""
    of, side = (form(context, state, scope, each) for each in arguments)
    count = side.number()
    if count is None or not 0 < count <= LARGEST_SIDE:
        raise Unsupported(f"the function {function} with a side of {polynomials.text(side)}")
    not_negative = conditions.not_negative(of)
    context.claim(state, "int32", not_negative, f"the operand of {function} is negative")
    places = np.arange(count * count, dtype=np.int64)
    table = np.asarray(OF_INTS[function](places, count), np.int64)
    return integers.permuted(context.theory, of, table)


def _of_first_lanes(found: Value, wide: bool) -> tuple[Value, bool]:
    """What the first lane of each warp has."""
    if not is_integer(found):
        raise Unsupported("a number of the first lane that is not an integer")

    def of_first(form: Polynomial) -> Polynomial:
        return polynomials.mapped(form, lambda own: np.repeat(own[::WARP], WARP)[: own.size])

    return integers.on_leaves(of_first, cast(Integer, found)), wide


def _unary(context: WalkContext, op: str, found: Value, wide: bool) -> tuple[Value, bool]:
    if op == "!":
        if isinstance(found, CONDITIONS):
            return conditions.negated(found), False
        return Apply("!", (as_data(found),)), False
    if is_integer(found):
        return integers.on_leaves(lambda x: polynomials.scale(x, -1), cast(Integer, found)), wide
    return Apply("-", (as_data(found),)), False


def _select(
    context: WalkContext, state: WalkState, scope: WalkScope, expr: Select
) -> tuple[Value, bool]:
    test = value(context, state, scope, expr.condition)
    if not isinstance(test, CONDITIONS):
        yes = number(context, state, scope, expr.yes)
        no = number(context, state, scope, expr.no)
        return Apply("where", (as_data(test), yes, no)), False
    if isinstance(test, Truth) and isinstance(test.value, bool):
        return _evaluated(context, state, scope, expr.yes if test.value else expr.no)
    yes, wide = _evaluated(context, under(state, test), scope, expr.yes)
    no, also = _evaluated(context, under(state, conditions.negated(test)), scope, expr.no)
    if is_integer(yes):
        chosen = integers.choose(context.theory, test, cast(Integer, yes), cast(Integer, no))
        return chosen, wide or also
    if isinstance(yes, CONDITIONS):
        return conditions.if_else(test, yes, cast(Condition, no)), False
    return data.pick(test, as_data(yes), as_data(no)), False


def _logic(context: WalkContext, state: WalkState, scope: WalkScope, expr: Binary) -> Value:
    first = value(context, state, scope, expr.left)
    if not isinstance(first, CONDITIONS):
        second = number(context, state, scope, expr.right)
        return Apply(expr.op, (as_data(first), second))
    left = first
    short = left if expr.op == "&&" else conditions.negated(left)
    if isinstance(short, Truth) and short.value is False:
        return left
    right = truth(context, under(state, short), scope, expr.right)
    return conditions.all_of(left, right) if expr.op == "&&" else conditions.any_of(left, right)


def _is_total(value: Value) -> TypeGuard[Total | TermTotals]:
    return isinstance(value, Total | TermTotals)


COMPARED: dict[str, Callable[[Polynomial, Polynomial], Condition]] = {
    "<": conditions.less,
    "<=": lambda x, y: conditions.at_least(y, x),
    ">": lambda x, y: conditions.less(y, x),
    ">=": conditions.at_least,
    "==": lambda x, y: conditions.is_zero(polynomials.subtract(x, y)),
    "!=": lambda x, y: conditions.negated(conditions.is_zero(polynomials.subtract(x, y))),
}


INTEGER_OPERATORS: dict[str, Callable[[int, int], int]] = {
    "+": int.__add__,
    "-": int.__sub__,
    "*": int.__mul__,
    "/": int.__floordiv__,
    "%": int.__mod__,
    "^": int.__xor__,
    "<<": int.__lshift__,
}


def _binary(
    context: WalkContext, state: WalkState, scope: WalkScope, expr: Binary
) -> tuple[Value, bool]:
    left, wide = _evaluated(context, state, scope, expr.left)
    right, also = _evaluated(context, state, scope, expr.right)
    op, wide = expr.op, wide or also
    if isinstance(left, Polynomial) and isinstance(right, Polynomial):
        if op not in COMPARED and left.plain is not None and right.plain is not None:
            return _arithmetic(context, state, op, left, right), wide
    elif op == "+" and (total := _sum_of_totals(context, state, left, right)) is not None:
        return total, False
    elif op == "*" and _is_total(left) and isinstance(right, TensorElement):
        scaled = term_totals.scaled(left, right, context.scales)
        if scaled is not None:
            return scaled, False
    if not (is_integer(left) and is_integer(right)):
        x, y = as_data(left), as_data(right)
        if op == "*" and context.block_scales:
            scaled = scaled_products.product(context, state, x, y)
            if scaled is not None:
                return scaled, False
        return _of_numbers(op, x, y), False
    x, y = cast(Integer, left), cast(Integer, right)
    if op in COMPARED:
        compare = COMPARED[op]
        found = conditions.over_choices(
            x, lambda a: conditions.over_choices(y, lambda b: compare(a, b))
        )
        return found, False
    result = integers.combined(lambda a, b: _arithmetic(context, state, op, a, b), x, y)
    if not wide and not (op == "/" and isinstance(result, Polynomial) and not result.uniform):
        _check_range(context, state, result, ())  # a quotient is not greater than what is divided
    return result, wide


def _sum_of_totals(
    context: WalkContext, state: WalkState, left: Value, right: Value
) -> Data | None:
    """``left + right``, if these are partial sums; None if they are other values."""
    if data.ZERO in (left, right) and isinstance(right, Total | TermTotals | Number):
        return right if left == data.ZERO else as_data(left)
    if isinstance(left, UnknownData):
        left, right = right, left
    if _is_total(left) and (_is_total(right) or isinstance(right, UnknownData)):
        return joined_totals.joined(context, state, left, right)
    return None


def _check_range(
    context: WalkContext, state: WalkState, result: Integer, path: tuple[Condition, ...]
) -> None:
    if isinstance(result, Polynomial):
        context.ranged(state, result, path)
    else:
        _check_range(context, state, result.yes, (*path, result.condition))
        _check_range(context, state, result.no, (*path, conditions.negated(result.condition)))


def _arithmetic(
    context: WalkContext, state: WalkState, op: str, x: Polynomial, y: Polynomial
) -> Polynomial:
    if x.plain is not None and y.plain is not None and (op in "+-*" or y.plain > 0 <= x.plain):
        return _of_integers(op, x.plain, y.plain)
    match op:
        case "+":
            return polynomials.add(x, y)
        case "-":
            return polynomials.subtract(x, y)
        case "*":
            return polynomials.multiply(x, y)
        case "/" | "%":
            context.claim(
                state, "int32", conditions.not_negative(x), "the operand of a division is negative"
            )
            positive = conditions.at_least(y, integers.ONE)
            context.claim(state, "int32", positive, "a divisor is not positive")
            return integers.divided(context.theory, x, y)[0 if op == "/" else 1]
        case "^":
            return integers.xor(x, y)
        case "<<":
            by = np.asarray(y.constant)
            if y.concrete and np.all((by >= 0) & (by < BITS)):
                return polynomials.scale(x, 2**y.constant)
        case _:
            pass
    raise Unsupported(f"the operator {op} of {polynomials.text(x)} and {polynomials.text(y)}")


def _of_integers(op: str, x: int, y: int) -> Polynomial:
    return polynomials.fixed(INTEGER_OPERATORS[op](x, y))


def _of_numbers(op: str, left: Data, right: Data) -> Value:
    if op in COMPARED and all(isinstance(each, ScalarArgument | Number) for each in (left, right)):
        own = Flag(f"{data.shown(left, 0)} == {data.shown(right, 0)}")
        if op == "==":
            return own
        if op == "!=":
            return conditions.negated(own)
        return Flag(f"{data.shown(left, 0)} {op} {data.shown(right, 0)}")
    return Apply(op, (left, right))


def _call(context: WalkContext, state: WalkState, function: str, own: list[Data]) -> Data:
    if function in ("fmaf", "fma", "mad"):
        if own[1] == Number(1.0):  # an addition of integers that may wrap
            total = _sum_of_totals(context, state, own[0], own[2])
            if total is not None:
                return total
        if context.block_scales:
            total = scaled_products.promoted(context, state, own[0], own[1], own[2])
            if total is not None:
                return total
        return products.multiply_add(context, state, own[0], own[1], own[2])
    if function.startswith("from_"):  # from the type that it is stored in: the same number
        return own[0]
    return Apply(function, tuple(own))
