"""Expressions of lowered code compiled to Python closures, once for all the times they are run.

A closure takes a mask (None: every lane takes part) and gives one value for all lanes, or an array
of one for each.  Arithmetic is done in all lanes; memory is read in those of the mask alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np

from gemmgen.interpreter.memory import Kind, Memory
from gemmgen.interpreter.scope import UNKNOWN, Closure, FrameSlot, Run, Scope, known, unknown
from gemmgen.interpreter.simt import Index, Mask, left_out, where
from gemmgen.ir.expr import Binary, Call, Element, Expr, Float, Int, Select, Unary, Var, Wide
from gemmgen.ir.target import WARP
from gemmgen.numerics import operators
from gemmgen.numerics.operators import ARITHMETIC, COMPARE, Value, invert


def compile_expression(expr: Expr, scope: Scope) -> Closure:
    """The closure of ``expr``, whose names are those of ``scope``."""

    def of(part: Expr) -> Closure:
        return compile_expression(part, scope)

    match expr:
        case Int(value):
            return known(value, "int")
        case Float(value, dtype):
            kind = "double" if dtype == "f64" else "float"
            return known(NUMBERS[kind](value), kind)
        case Var(name):
            return _variable(name, scope)
        case Wide(operand):
            return of(operand)
        case Element():
            return _element(expr, scope)
        case Binary("&&" | "||" as op, left, right):
            return _logic(op, of(left), of(right))
        case Select(condition, yes, no):
            return _select(of(condition), of(yes), of(no))
        case Binary(op, left, right):
            return _binary(op, of(left), of(right))
        case Unary("!", operand):
            return apply(invert, "bool", of(operand))
        case Unary(_, operand):
            part = of(operand)
            return apply(operators.negate, part.kind, part)
        case Call(function, arguments):
            return _call(function, tuple(of(argument) for argument in arguments))


def apply(function: Callable[..., Value], kind: Kind, *parts: Closure) -> Closure:
    """``function`` of the values of ``parts``: a constant if they are."""
    if any(part.known is UNKNOWN for part in parts):
        return unknown(kind, *parts)
    runs = tuple(part.run for part in parts)
    if all(part.known is not None for part in parts):
        return known(function(*(run(None) for run in runs)), kind)
    if len(runs) == 1:
        (only,) = runs
        return Closure(lambda mask: function(only(mask)), kind)
    if len(runs) == 2:
        first, second = runs
        return Closure(lambda mask: function(first(mask), second(mask)), kind)
    if len(runs) == 3:
        # The multiply-add of every inner loop: worth its own closure.
        x, y, z = runs
        return Closure(lambda mask: function(x(mask), y(mask), z(mask)), kind)
    return Closure(lambda mask: function(*(run(mask) for run in runs)), kind)


def _variable(name: str, scope: Scope) -> Closure:
    found = scope.find(name)
    if isinstance(found, Closure):
        return found
    assert isinstance(found, FrameSlot), f"{name} is not a variable"
    frame, number = scope.frame, found.number
    return Closure(lambda _: frame[number], found.kind)


def _element(element: Element, scope: Scope) -> Closure:
    memory, index = compile_element(element, scope)
    return Closure(
        lambda mask: memory.load(index(mask), mask), memory.kind, memory.known, memory.recorded
    )


def compile_element(element: Element, scope: Scope) -> tuple[Memory, Callable[[Mask], Index]]:
    """The memory of an element, and its flat index there."""
    buffer, indices = element.buffer, element.indices
    array = scope.array(buffer)
    sizes = array.sizes if array.sizes is not None else (0,)
    assert len(indices) == len(sizes), f"{buffer} has {len(sizes)} dimensions"
    flat: Expr = indices[0] if indices else Int(0)
    for index, size in zip(indices[1:], sizes[1:], strict=True):
        flat = flat * size + index
    index = compile_expression(flat, scope)
    assert index.kind == "int", f"an index of {buffer} is a {index.kind}"
    moved = index.run if array.first is None else from_first(array.first, index.run, scope)
    return array.memory, cast(Callable[[Mask], Index], moved)


def from_first(first: FrameSlot, index: Run, scope: Scope) -> Run:
    """``index`` counted from the element that a pointer points to."""
    frame, number = scope.frame, first.number
    return lambda mask: ARITHMETIC["+"](frame[number], index(mask))


NUMBERS: dict[Kind, type[np.float32] | type[np.float64]] = {
    "float": np.float32,
    "double": np.float64,
    "i32": np.float64,
}


NUMBERS_FIRST: tuple[Kind, ...] = ("double", "float", "i32")
"""The kinds of numbers; two are combined in the first that one of them has."""


def converted(part: Closure, kind: Kind) -> Closure:
    """``part`` converted as C does in an assignment to a variable or element of ``kind``."""
    if part.kind == kind or kind not in NUMBERS:
        return part
    number = NUMBERS[kind]

    def convert(value: Value) -> Value:
        return value.astype(number) if isinstance(value, np.ndarray) else number(value)

    return apply(convert, kind, part)


def _common(left: Closure, right: Closure) -> tuple[Closure, Closure, Kind]:
    """Both converted to the type in which C combines them."""
    for kind in NUMBERS_FIRST:
        if kind in (left.kind, right.kind):
            return converted(left, kind), converted(right, kind), kind
    return left, right, "int"


def _binary(op: str, left: Closure, right: Closure) -> Closure:
    first, second, kind = _common(left, right)
    if op in COMPARE:
        return apply(COMPARE[op], "bool", first, second)
    if op in ARITHMETIC:
        return apply(ARITHMETIC[op], kind, first, second)
    return apply(operators.INTEGER[op] if kind == "int" else operators.divide, kind, first, second)


def _call(function: str, parts: tuple[Closure, ...]) -> Closure:
    if function in ("float", "double"):
        return converted(parts[0], function)
    if function in operators.FROM_BITS:
        return apply(operators.FROM_BITS[function], "float", parts[0])
    if function in operators.TO_BITS:
        return apply(operators.TO_BITS[function], "int", converted(parts[0], "float"))
    if function in operators.TO_INTEGERS:
        return apply(operators.TO_INTEGERS[function], "i32", converted(parts[0], "float"))
    if function == "is_finite":
        return apply(cast(Callable[..., Value], np.isfinite), "bool", parts[0])
    if function == "mad":
        compute = cast(Callable[..., Value], operators.mad)
        return apply(compute, "i32", *(converted(p, "i32") for p in parts))
    if function in operators.OF_INTS:
        return apply(operators.OF_INTS[function], "int", *parts)
    if function == "uniform":
        return _uniform(parts[0])
    if function in SHUFFLES:
        return _shuffle(parts, SHUFFLES[function])
    kind: Kind = "double" if function in operators.DOUBLE else "float"
    compute = operators.DOUBLE[function] if kind == "double" else operators.FUNCTIONS[function]
    return apply(cast(Callable[..., Value], compute), kind, *(converted(p, kind) for p in parts))


SHUFFLES: dict[str, Kind] = {
    "shuffle_xor": "float",
    "shuffle_xor_f64": "double",
    "shuffle_xor_i32": "i32",
}


def _shuffle(parts: tuple[Closure, ...], kind: Kind) -> Closure:
    """A value of the lane of the same warp whose number differs by a distance; all lanes of a warp
    take part, or none."""
    value, distance = converted(parts[0], kind), parts[1].known
    if value.known is UNKNOWN:
        return unknown(kind, value)
    assert isinstance(distance, int)
    run, lanes = value.run, np.arange(WARP) ^ distance

    def shuffled(mask: Mask) -> Value:
        found = run(mask)
        assert isinstance(found, np.ndarray), "lanes have their own values"
        assert left_out(mask, WARP) is None, "a part of a warp shuffles"
        return cast(Value, found.reshape(-1, WARP)[:, lanes].reshape(-1))

    return Closure(shuffled, kind)


def _uniform(value: Closure) -> Closure:
    """The value of the first lane of each warp; all lanes of a warp take part, or none."""
    if value.known is not None:
        return value

    def first(mask: Mask) -> Value:
        found = value.run(mask)
        if not isinstance(found, np.ndarray):
            return found
        assert left_out(mask, WARP) is None, "a part of a warp shuffles"
        return cast(Value, np.repeat(found.reshape(-1, WARP)[:, 0], WARP))

    return Closure(first, value.kind)


def _logic(op: str, left: Closure, right: Closure) -> Closure:
    """The right side is evaluated only in lanes in which the left one leaves the result open."""
    if left.known is UNKNOWN:
        return unknown("bool", left, right)

    def run(mask: Mask) -> Value:
        first = left.run(mask)
        open_, undecided = where(first if op == "&&" else invert(first), mask)
        if not open_:
            return first
        second = right.run(undecided)
        if right.known is UNKNOWN:
            return UNKNOWN
        return np.logical_and(first, second) if op == "&&" else np.logical_or(first, second)

    return _folded(Closure(run, "bool"), left, right)


def _select(condition: Closure, yes: Closure, no: Closure) -> Closure:
    """Only the chosen side is evaluated, in each lane; both if what chooses is ``UNKNOWN``."""
    first, second, kind = _common(yes, no)
    if condition.known is UNKNOWN:
        return unknown(kind, condition, first, second)
    computed = first.known is not UNKNOWN and second.known is not UNKNOWN

    def run(mask: Mask) -> Value:
        chosen = condition.run(mask)
        some, on = where(chosen, mask)
        others, off = where(invert(chosen), mask)
        if not others:
            return first.run(mask)
        if not some:
            return second.run(mask)
        sides = first.run(on), second.run(off)
        return np.where(chosen, *sides) if computed else UNKNOWN

    return _folded(Closure(run, kind), condition, first, second)


def _folded(compiled: Closure, *parts: Closure) -> Closure:
    """``compiled`` as a constant if its parts are, as ``UNKNOWN`` if one of them is."""
    if any(part.known is UNKNOWN for part in parts):
        reads = any(part.reads for part in parts)
        return Closure(compiled.run, compiled.kind, UNKNOWN, reads)
    if all(part.known is not None for part in parts):
        return known(compiled.run(None), compiled.kind)
    return compiled
