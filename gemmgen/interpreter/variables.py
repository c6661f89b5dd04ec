"""What a thread does for itself: variables, pointers, and elements that it moves."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np

from gemmgen.interpreter.code import Code, Statements
from gemmgen.interpreter.expressions import NUMBERS, converted, from_first
from gemmgen.interpreter.machine import Step
from gemmgen.interpreter.scope import UNKNOWN, Array, Closure, FrameSlot, Meaning, Run, unknown
from gemmgen.interpreter.simt import Mask
from gemmgen.ir.control import AdvanceRing, Assign, Define
from gemmgen.ir.expr import Element, Expr, Int, Unary, Var
from gemmgen.ir.thread_code import Advance, Invoke, Move, Parameter, Point, RegisterArray
from gemmgen.numerics.operators import Value


def _register_array(node: RegisterArray, code: Code) -> Step | None:
    memory, declare = code.machine.registers(node, prod(node.sizes))
    code.scope.bind(node.name, Array(memory, node.sizes))
    return declare


def _define(node: Define, code: Code) -> Step | None:
    value = converted(code.expression(node.value), node.kind)
    changes = node.mutable and node.kind in NUMBERS
    if value.known is UNKNOWN or (changes and not code.machine.computes):
        code.scope.bind(node.name, unknown(node.kind))
        return value.accesses
    return _settled(code.scope.variable(node.name, node.kind), value.run, code)


def _settled(slot: FrameSlot, run: Run, code: Code) -> Step:
    """The value of ``slot``, computed when the statement is reached."""
    frame, number = code.scope.frame, slot.number

    def step(mask: Mask) -> None:
        frame[number] = _own(run(mask))

    return step


def _own(value: Value) -> Value:
    """A variable's own copy: registers are read as views, which later stores would change."""
    if isinstance(value, np.ndarray) and value.base is not None:
        return value.copy()
    return value


def _assign(node: Assign, code: Code) -> Step | None:
    value = code.expression(node.value)
    if isinstance(node.target, str):
        return _assign_variable(node.target, value, code)
    memory, index = code.element(node.target)
    run = converted(value, memory.kind).run
    if not memory.recorded:
        return value.accesses

    def step(mask: Mask) -> None:
        memory.store(index(mask), run(mask), mask)

    return step


def _assign_variable(name: str, value: Closure, code: Code) -> Step | None:
    slot = code.scope.find(name)
    if isinstance(slot, Closure) and slot.known is UNKNOWN:
        return value.accesses
    assert isinstance(slot, FrameSlot), f"{name} is not a variable"
    run = converted(value, slot.kind).run
    frame, number = code.scope.frame, slot.number

    def step(mask: Mask) -> None:
        new = run(mask)
        frame[number] = _own(new) if mask is None else np.where(mask, new, frame[number])

    return step


def _advance_ring(node: AdvanceRing, code: Code) -> Step | None:
    return code.sequence(node.assignments)


def _move(node: Move, code: Code) -> Step | None:
    target, to = code.element(node.target)
    source, at = code.element(node.source)
    width = node.width
    if not (target.recorded or source.recorded):
        return None

    def step(mask: Mask) -> None:
        target.write(to(mask), source.read(at(mask), width, mask), mask)

    return step


def _advance(node: Advance, code: Code) -> Step:
    """From here on the tensor's name points ``by`` elements further on."""
    array = code.scope.array(node.tensor)
    added = code.expression(Unary("-", node.by) if node.back else node.by).run
    run = added if array.first is None else from_first(array.first, added, code.scope)
    return _settled(_pointer(node.tensor, array, code), run, code)


def _point(node: Point, code: Code) -> Step:
    """The tensor's memory under its own name."""
    array = code.scope.array(node.source.buffer)
    _, run = code.element(node.source)
    return _settled(_pointer(node.name, array, code), run, code)


def _invoke(node: Invoke, code: Code) -> Step | None:
    """The body of a function, where its parameters mean the arguments."""
    steps: list[Step] = []
    given = tuple(zip(node.function.parameters, node.arguments, strict=True))
    meanings = {p.name: _argument(p, argument, code, steps) for p, argument in given}
    code.scope.enter()
    for name, meaning in meanings.items():
        code.scope.bind(name, meaning)
    body = code.sequence(node.function.body)
    results = {name: code.scope.find(name) for name in node.function.results}
    code.scope.leave()
    for name, meaning in results.items():
        code.scope.bind(name, meaning)
    if body is None:
        return None

    def step(mask: Mask) -> None:
        for settle in steps:
            settle(mask)
        body(mask)

    return step


def _argument(parameter: Parameter, argument: Expr, code: Code, steps: list[Step]) -> Meaning:
    """What a parameter means; ``steps`` compute what is known only if the call is reached."""
    if isinstance(argument, Element):
        sizes = None
        if parameter.shape:
            sizes = (code.scope.array(argument.buffer).sizes or ())[len(argument.indices) :]
            first = (*argument.indices, *(Int(0) for _ in sizes))
            argument = replace(argument, indices=first)
        memory, index = code.element(argument)
        slot = code.scope.slot_of("int")
        steps.append(_settled(slot, index, code))
        return Array(memory, sizes, slot)
    if isinstance(argument, Var) and isinstance(array := code.scope.find(argument.name), Array):
        return array
    value = code.expression(argument)
    if value.known is not None:
        return value
    slot = code.scope.slot_of(value.kind)
    steps.append(_settled(slot, value.run, code))
    return slot


def _pointer(name: str, array: Array, code: Code) -> FrameSlot:
    slot = code.scope.slot_of("int")
    code.scope.bind(name, replace(array, first=slot))
    return slot


NODES: Statements = {
    RegisterArray: _register_array,
    Define: _define,
    Assign: _assign,
    AdvanceRing: _advance_ring,
    Move: _move,
    Advance: _advance,
    Point: _point,
    Invoke: _invoke,
}
