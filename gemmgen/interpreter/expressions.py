"""Expressions of lowered code compiled to Python closures, once for all the times they are run.

A closure takes a mask (None: every lane takes part) and gives one value for all lanes, or an array
of one for each.  Arithmetic is done in all lanes; memory is read in those of the mask alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal, cast

import numpy as np

from gemmgen.base.record import record
from gemmgen.interpreter.evaluate import (
    ARITHMETIC,
    COMPARE,
    DOUBLE,
    FROM_BITS,
    FUNCTIONS,
    INTEGER,
    TO_BITS,
    Bools,
    Operation,
    Value,
    divide,
    invert,
    negate,
)
from gemmgen.interpreter.memory import FlatMemory, Index, Mask, Registers
from gemmgen.ir.expr import (
    Binary,
    Call,
    Element,
    Expr,
    Float,
    Int,
    Select,
    Unary,
    Var,
    Wide,
)
from gemmgen.ir.lowered import Point
from gemmgen.ir.target import WARP

Kind = Literal["int", "float", "double", "bool"]
Run = Callable[[Mask], Value]

KINDS: dict[type[np.generic], Kind] = {
    np.float32: "float",
    np.float64: "double",
    np.uint16: "int",
}
"""What an element of a memory is in C: f16 and bf16 are raw bits."""


@record
class Compiled:
    """A closure, its type in C, and its value where that is known before anything runs."""

    run: Run
    kind: Kind
    known: Value | None = None


@record
class Slot:
    """A variable: its place in the frame and its type."""

    place: int
    kind: Kind


@record
class Array:
    """A memory and the extents by which its indices are flattened, as C does it.

    An index beyond its own extent lands in a neighbouring row; only the whole array is guarded.
    ``first`` is where a pointer that was moved points.
    """

    memory: FlatMemory | Registers
    sizes: tuple[int, ...] | None
    """None: one index, flat already."""
    first: Slot | None = None


class Scope:
    """Names in nested braces, and the frame in which variables live."""

    def __init__(self) -> None:
        self.frame: list[Value] = []
        self.names: list[dict[str, Compiled | Slot | Array]] = [{}]

    def enter(self) -> None:
        self.names.append({})

    def leave(self) -> None:
        self.names.pop()

    def bind(self, name: str, meaning: Compiled | Slot | Array) -> None:
        self.names[-1][name] = meaning

    def variable(self, name: str, kind: Kind) -> Slot:
        """A new variable of the innermost braces."""
        slot = Slot(len(self.frame), kind)
        self.frame.append(0)
        self.bind(name, slot)
        return slot

    def find(self, name: str) -> Compiled | Slot | Array:
        for names in reversed(self.names):
            if name in names:
                return names[name]
        raise KeyError(f"{name} is not declared here")

    def slot(self, name: str) -> Slot:
        found = self.find(name)
        assert isinstance(found, Slot), name
        return found

    def array(self, name: str) -> Array:
        found = self.find(name)
        assert isinstance(found, Array), name
        return found


def known(value: Value, kind: Kind) -> Compiled:
    """A value that is known before anything runs."""
    return Compiled(lambda _: value, kind, value)


def compile_expression(expr: Expr, scope: Scope) -> Compiled:
    """The closure of ``expr`` where the names are those of ``scope``."""
    match expr:
        case Int(value):
            return known(value, "int")
        case Float(value, dtype):
            if dtype == "f64":
                return known(np.float64(value), "double")
            return known(np.float32(value), "float")
        case Var(name):
            return _variable(name, scope)
        case Wide(operand):
            return compile_expression(operand, scope)
        case Element(buffer, indices):
            memory, index = compile_element(buffer, indices, scope)
            kind = KINDS[memory.data.dtype.type]
            return Compiled(
                lambda mask: cast(Value, memory.load(cast(Index, index(mask)), mask)), kind
            )
        case Binary("&&" | "||" as op, left, right):
            parts = (compile_expression(left, scope), compile_expression(right, scope))
            return _logic(op, *parts)
        case Select(condition, yes, no):
            parts = tuple(compile_expression(e, scope) for e in (condition, yes, no))
            return _select(*parts)
        case Binary(op, left, right):
            parts = (compile_expression(left, scope), compile_expression(right, scope))
            return _fold(_binary(op, *parts), parts)
        case Unary(op, operand):
            part = compile_expression(operand, scope)
            return _fold(_unary(op, part), (part,))
        case Call(function, arguments):
            parts = tuple(compile_expression(e, scope) for e in arguments)
            return _fold(_call(function, parts), parts)


def compile_element(
    buffer: str, indices: tuple[Expr, ...], scope: Scope
) -> tuple[FlatMemory | Registers, Run]:
    """The memory of an element, and its flat index there."""
    array = scope.array(buffer)
    sizes = array.sizes if array.sizes is not None else (0,)
    assert len(indices) == len(sizes), f"{buffer} has {len(sizes)} dimensions"
    flat: Expr = indices[0] if indices else Int(0)
    for index, size in zip(indices[1:], sizes[1:], strict=True):
        flat = Binary("+", Binary("*", flat, Int(size)), index)
    index = compile_expression(flat, scope)
    assert index.kind == "int", f"an index of {buffer} is a {index.kind}"
    return array.memory, index.run if array.first is None else _moved(index.run, array.first, scope)


def _moved(index: Run, first: Slot, scope: Scope) -> Run:
    frame, place = scope.frame, first.place
    return lambda mask: ARITHMETIC["+"](frame[place], index(mask))


def advance(tensor: str, by: Expr, scope: Scope) -> tuple[Slot, Run]:
    """``tensor += by``: from here on the name means what lies behind.  The slot is for the sum,
    which the closure computes where the statement is reached."""
    array = scope.array(tensor)
    added = compile_expression(by, scope)
    slot = Slot(len(scope.frame), "int")
    scope.frame.append(0)
    run = added.run if array.first is None else _moved(added.run, array.first, scope)
    scope.bind(tensor, replace(array, first=slot))
    return slot, run


def point(node: Point, scope: Scope) -> tuple[Slot, Run]:
    """``name = &tensor[...]``: the tensor's memory under a name of its own."""
    array = scope.array(node.source.buffer)
    _, run = compile_element(node.source.buffer, node.source.indices, scope)
    slot = Slot(len(scope.frame), "int")
    scope.frame.append(0)
    scope.bind(node.name, replace(array, first=slot))
    return slot, run


def _fold(compiled: Compiled, parts: tuple[Compiled, ...]) -> Compiled:
    """What depends on known values alone is known."""
    if all(part.known is not None for part in parts):
        return known(compiled.run(None), compiled.kind)
    return compiled


def _variable(name: str, scope: Scope) -> Compiled:
    found = scope.find(name)
    assert not isinstance(found, Array), f"{name} is an array"
    if isinstance(found, Compiled):
        return found
    frame, place = scope.frame, found.place
    return Compiled(lambda _: frame[place], found.kind)


NUMBERS: dict[Kind, type[np.float32] | type[np.float64]] = {
    "float": np.float32,
    "double": np.float64,
}


def converted(part: Compiled, kind: Kind) -> Compiled:
    """``part`` converted as C does where it is given to a variable or element of ``kind``."""
    if part.kind == kind or kind not in NUMBERS:
        return part
    run, number = part.run, NUMBERS[kind]

    def convert(mask: Mask) -> Value:
        value = run(mask)
        return value.astype(number) if isinstance(value, np.ndarray) else number(value)

    return _fold(Compiled(convert, kind), (part,))


def as_float(part: Compiled) -> Compiled:
    """``part`` converted as C does where an integer meets a float."""
    return converted(part, "float")


def _alike(left: Compiled, right: Compiled) -> tuple[Run, Run, Kind]:
    for kind in NUMBERS:
        if kind in (left.kind, right.kind):
            wide: Kind = "double" if "double" in (left.kind, right.kind) else kind
            return converted(left, wide).run, converted(right, wide).run, wide
    return left.run, right.run, "int"


def _binary(op: str, left: Compiled, right: Compiled) -> Compiled:
    first, second, kind = _alike(left, right)
    if op in COMPARE:
        return _pair(COMPARE[op], first, second, "bool")
    if op in ARITHMETIC:
        return _pair(ARITHMETIC[op], first, second, kind)
    return _pair(INTEGER[op] if kind == "int" else divide, first, second, kind)


def _pair(function: Operation, first: Run, second: Run, kind: Kind) -> Compiled:
    return Compiled(lambda mask: function(first(mask), second(mask)), kind)


def _unary(op: str, part: Compiled) -> Compiled:
    run = part.run
    if op == "!":
        return Compiled(lambda mask: invert(run(mask)), "bool")
    return Compiled(lambda mask: negate(run(mask)), part.kind)


def _call(function: str, parts: tuple[Compiled, ...]) -> Compiled:
    if function in NUMBERS:
        return converted(parts[0], "float" if function == "float" else "double")
    if function in FROM_BITS:
        widen, raw = FROM_BITS[function], parts[0].run
        return Compiled(lambda mask: widen(raw(mask)), "float")
    if function in TO_BITS:
        narrow, number = TO_BITS[function], as_float(parts[0]).run
        return Compiled(lambda mask: narrow(number(mask)), "int")
    if function in SHUFFLES:
        return _shuffle(parts, SHUFFLES[function])
    kind: Kind = "double" if function in DOUBLE else "float"
    compute = DOUBLE[function] if kind == "double" else FUNCTIONS[function]
    runs = tuple(converted(p, kind).run for p in parts)
    if len(runs) == 3:
        # The multiply-add of every inner loop: worth its own closure.
        x, y, z = runs
        return Compiled(lambda mask: compute(x(mask), y(mask), z(mask)), kind)
    return Compiled(lambda mask: compute(*(run(mask) for run in runs)), kind)


SHUFFLES: dict[str, Kind] = {"shuffle_xor": "float", "shuffle_xor_f64": "double"}


def _shuffle(parts: tuple[Compiled, ...], kind: Kind) -> Compiled:
    """A value of the lane of the same warp whose number differs by a distance; all lanes of a warp
    take part, or none."""
    value, distance = parts
    run, by = converted(value, kind).run, distance.known
    assert isinstance(by, int)
    lanes = np.arange(WARP) ^ by

    def shuffled(mask: Mask) -> Value:
        found = run(mask)
        assert isinstance(found, np.ndarray), "lanes have values of their own"
        if mask is not None:
            warps = mask.reshape(-1, WARP)
            assert (warps.any(axis=1) == warps.all(axis=1)).all(), "a part of a warp shuffles"
        return cast(Value, found.reshape(-1, WARP)[:, lanes].reshape(-1))

    return Compiled(shuffled, kind)


def narrowed(mask: Mask, condition: Bools) -> Mask:
    """The lanes of ``mask`` in which ``condition`` holds; None where that is every lane."""
    both = condition if mask is None else condition & mask
    return None if both.all() else both


def is_empty(mask: Mask) -> bool:
    return mask is not None and not mask.any()


def where(condition: Value, mask: Mask) -> tuple[bool, Mask]:
    """The lanes of ``mask`` in which ``condition`` holds, and whether there are any."""
    if not isinstance(condition, np.ndarray):
        return bool(condition), mask
    both = narrowed(mask, cast(Bools, condition))
    return not is_empty(both), both


def _logic(op: str, left: Compiled, right: Compiled) -> Compiled:
    """The right side is asked only where the left one leaves it open."""

    def run(mask: Mask) -> Value:
        first = left.run(mask)
        open_, undecided = where(first if op == "&&" else invert(first), mask)
        if not open_:
            return first
        second = right.run(undecided)
        return np.logical_and(first, second) if op == "&&" else np.logical_or(first, second)

    return _fold(Compiled(run, "bool"), (left, right))


def _select(condition: Compiled, yes: Compiled, no: Compiled) -> Compiled:
    """Only the chosen side is computed, in each lane."""
    first, second, kind = _alike(yes, no)

    def run(mask: Mask) -> Value:
        chosen = condition.run(mask)
        some, on = where(chosen, mask)
        others, off = where(invert(chosen), mask)
        if not others:
            return first(mask)
        if not some:
            return second(mask)
        return np.where(chosen, first(on), second(off))

    return _fold(Compiled(run, kind), (condition, yes, no))
