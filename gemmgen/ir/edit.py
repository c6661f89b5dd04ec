"""Small rewrites that passes are written with; each gives a new value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from gemmgen.ir.atoms import ATOMS
from gemmgen.ir.buffers import Buffer
from gemmgen.ir.dtypes import BYTES
from gemmgen.ir.nodes import Contract, Copy, Kernel, Loop, Pipeline, Program, Statement

Rule = Callable[[Copy | Contract], Copy | Contract]


def edit_main(program: Program, rule: Callable[[Kernel], Kernel]) -> Program:
    """``program`` with its contracting kernel rewritten."""
    return replace(program, kernels=(rule(program.main), *program.kernels[1:]))


def edit_buffer(kernel: Kernel, name: str, rule: Callable[[Buffer], Buffer]) -> Kernel:
    """``kernel`` with one buffer's declaration rewritten."""
    buffers = tuple(rule(b) if b.name == name else b for b in kernel.buffers)
    return replace(kernel, buffers=buffers)


def edit_operations(kernel: Kernel, rule: Rule) -> Kernel:
    """``kernel`` with ``rule`` applied to every copy and contraction, at any depth."""

    def visit(statement: Statement) -> Statement:
        match statement:
            case Copy() | Contract():
                return rule(statement)
            case Loop():
                return _loop(statement, rule)
            case Pipeline():
                produce = tuple(c for c in map(rule, statement.produce) if isinstance(c, Copy))
                consume = tuple(_loop(loop, rule) for loop in statement.consume)
                return replace(statement, produce=produce, consume=consume)
            case _:
                return statement

    return replace(kernel, body=tuple(visit(s) for s in kernel.body))


def copies(kernel: Kernel) -> tuple[Copy, ...]:
    """Every copy of ``kernel``, in order."""
    found: list[Copy] = []

    def note(operation: Copy | Contract) -> Copy | Contract:
        if isinstance(operation, Copy):
            found.append(operation)
        return operation

    edit_operations(kernel, note)
    return tuple(found)


def wide_access(kernel: Kernel, tile: Buffer) -> int:
    """The widest access to a shared tile: a store is wide if both sides share their last
    letter; tensor cores load lines of a width of their own."""
    widths = [max(1, ATOMS[contraction(kernel).atom].line // BYTES[tile.dtype])]
    for copy in copies(kernel):
        same = kernel.buffer(copy.src).letters[-1] == tile.letters[-1]
        if copy.src == tile.name or (copy.dst == tile.name and same):
            widths.append(copy.width)
    return max(widths)


def pipeline_of(kernel: Kernel) -> Pipeline | None:
    """The kernel's pipeline, if k is tiled."""
    return next((s for s in kernel.body if isinstance(s, Pipeline)), None)


def staged_copies(kernel: Kernel) -> tuple[Copy, ...]:
    """The copies whose tiles wait in registers between their loads and their stores: those made
    ahead of their use, and not asynchronous."""
    pipeline = pipeline_of(kernel)
    return tuple(
        copy
        for copy in (pipeline.produce if pipeline else ())
        if kernel.buffer(copy.dst).stages > 1 and copy.mode == "registers"
    )


def contraction(kernel: Kernel) -> Contract:
    """The kernel's one contraction."""
    found: list[Contract] = []

    def note(operation: Copy | Contract) -> Copy | Contract:
        if isinstance(operation, Contract):
            found.append(operation)
        return operation

    edit_operations(kernel, note)
    return found[0]


def _loop(loop: Loop, rule: Rule) -> Loop:
    return replace(loop, body=tuple(rule(s) for s in loop.body))
