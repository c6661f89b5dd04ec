"""Fragments: the part of an operand that a thread, or a warp, holds in registers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gemmgen.ir.buffers import Buffer, Role, Spread, slice_of
from gemmgen.ir.dtypes import DType
from gemmgen.ir.edit import changed_by, contraction, copy_outward, edit_buffer, edit_loops
from gemmgen.ir.nodes import Copy, Kernel, Loop


def fragment(tensor: str, dtype: DType, spread: Spread, origin: str) -> Buffer:
    """The registers for part of ``tensor``, as large as ``spread``."""
    shape = tuple((axis.letter, axis.extent) for axis in spread.axes)
    name = f"{tensor}_frag"
    return Buffer(name, Role.FRAGMENT, dtype, shape, tensor, spread=spread, origins=(origin,))


def contract_fragments(
    kernel: Kernel, a: Buffer, b: Buffer, origin: str, step: int = 1, **changes: Any
) -> Kernel:
    """``kernel`` with a contraction that reads the fragments ``a`` and ``b``, each copied from the
    old operand, ``step`` elements along k at a time; ``changes`` are other fields of it."""
    old, origins = contraction(kernel), (origin,)
    copies = (Copy(a.name, old.a, origins=origins), Copy(b.name, old.b, origins=origins))
    contract = replace(old, a=a.name, b=b.name, origins=(*old.origins, origin), **changes)

    def block(loop: Loop) -> Loop:
        return replace(loop, body=(*copies, contract), step=step)

    return edit_loops(kernel, block)


def contract_in_place(kernel: Kernel, origin: str, step: int, **changes: Any) -> Kernel:
    """``kernel`` with a contraction that reads its operands in shared memory, ``step`` elements
    along k at a time; ``changes`` are other fields of it."""
    old = contraction(kernel)
    contract = replace(old, origins=(*old.origins, origin), **changes)
    return edit_loops(kernel, lambda loop: replace(loop, body=(contract,), step=step))


def with_spread(kernel: Kernel, buffers: tuple[Buffer, ...], spread: Spread, origin: str) -> Kernel:
    """``kernel`` with ``buffers`` before its accumulator, which is spread again; the slice in which
    the output leaves shared memory follows the rows of its micro-tiles."""
    acc = changed_by(origin, kernel.accumulator, spread=spread)
    outward = copy_outward(kernel)
    if outward is not None:
        shape = slice_of(spread, *kernel.buffer(outward.src).letters)
        kernel = edit_buffer(kernel, outward.src, lambda b: changed_by(origin, b, shape=shape))
    others = (buffer for buffer in kernel.buffers if buffer != kernel.accumulator)
    return replace(kernel, buffers=(*others, *buffers, acc))
