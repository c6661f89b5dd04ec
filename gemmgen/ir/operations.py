"""The operations of a declared kernel: in order, and what each reads and writes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from gemmgen.ir.expr import Element, Expr, Var, walk
from gemmgen.ir.nodes import Contract, Copy, Init, Kernel, Loop, Map, Pipeline, Promote

Operation = Init | Copy | Contract | Promote | Map
Kind = TypeVar("Kind", Var, Element)


def operations_of(kernel: Kernel) -> Iterator[tuple[Operation, tuple[str, ...]]]:
    """Every operation of ``kernel`` in order, with the letters of the loops around it."""
    for statement in kernel.body:
        match statement:
            case Loop():
                yield from _in_loop(statement)
            case Pipeline():
                yield from ((copy, ()) for copy in statement.produce)
                for loop in statement.consume:
                    yield from _in_loop(loop)
            case _:
                yield statement, ()


def _in_loop(loop: Loop) -> Iterator[tuple[Operation, tuple[str, ...]]]:
    yield from ((operation, (loop.letter,)) for operation in loop.body)


def reads(operation: Operation) -> set[str]:
    """The buffers that an operation reads; an epilogue's further tensors are not buffers."""
    match operation:
        case Init():
            return set()
        case Copy(_, src):
            return {src}
        case Contract(acc, a, b):
            return {acc, a, b}
        case Promote(dst, part, scales=scales):
            return {dst, part, *scales}
        case Map(_, value, through=through):
            accumulators = {e.name for e in subtrees_of(value, Var) if e.name == "acc"}
            return {*accumulators, through} if through else accumulators


def writes(operation: Operation) -> set[str]:
    """The buffers that an operation writes."""
    match operation:
        case Contract(acc):
            return {acc}
        case Map(dst, through=str(through)):
            return {dst, through}
        case Promote(dst, part):
            return {dst, part}
        case _:
            return {operation.dst}


def line_of(operation: Operation) -> str:
    """An operation, as messages name it."""
    match operation:
        case Init(dst):
            return f"init {dst}"
        case Copy(dst, src):
            return f"{dst} = {src}"
        case Contract(acc, a, b):
            return f"{acc} += {a} * {b}"
        case Promote(dst, part):
            return f"{dst} += {part}"
        case Map(dst, _):
            return f"{dst} = (expression)"


def subtrees_of(expr: Expr, kind: type[Kind]) -> Iterator[Kind]:
    """The subexpressions of ``expr`` of one kind."""
    return (part for part in walk(expr) if isinstance(part, kind))
