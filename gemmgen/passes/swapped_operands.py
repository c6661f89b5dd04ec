"""Operands exchanged: the second factor in the role of rows (swap AB in CUTLASS and DeepGEMM).

An instruction has rows in steps of 16 or 64, and columns in steps of 8.  C has few rows in many
products of neural networks; with the operands exchanged its rows are the instruction's columns.
The problem is the same: roles are exchanged in all that names them.
"""

from __future__ import annotations

from dataclasses import replace

from gemmgen.ir.buffers import Buffer
from gemmgen.ir.edit import edit_operations
from gemmgen.ir.nodes import Contract, Copy, Kernel, Program


def with_swapped_operands(program: Program) -> Program:
    """``program`` with the roles of its factors, and of their letters, exchanged."""
    old = program.problem
    problem = replace(old, a=old.b, b=old.a, m=old.n, n=old.m, swapped=not old.swapped)
    kernels = tuple(_kernel(kernel, (problem.m, problem.n)) for kernel in program.kernels)
    return replace(program, problem=problem, kernels=kernels)


def _kernel(kernel: Kernel, letters: tuple[str, str]) -> Kernel:
    work = replace(kernel.work, tile=_ordered(kernel.work.tile, letters))
    buffers = tuple(_buffer(buffer, letters) for buffer in kernel.buffers)
    return edit_operations(replace(kernel, work=work, buffers=buffers), _exchanged)


def _ordered(
    sizes: tuple[tuple[str, int], ...], letters: tuple[str, str]
) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(sizes, key=lambda size: letters.index(size[0])))


def _buffer(buffer: Buffer, letters: tuple[str, str]) -> Buffer:
    """Accumulators with their rows' letter first."""
    spread = buffer.spread
    if spread is None or {axis.letter for axis in spread.axes} != {*letters}:
        return buffer
    axes = tuple(sorted(spread.axes, key=lambda axis: letters.index(axis.letter)))
    shape = tuple(sorted(buffer.shape, key=lambda size: letters.index(size[0])))
    return replace(buffer, shape=shape, spread=replace(spread, axes=axes))


def _exchanged(operation: Copy | Contract) -> Copy | Contract:
    if isinstance(operation, Contract):
        return replace(operation, a=operation.b, b=operation.a)
    return operation
