"""Small rewrites that passes are written with; each gives a new value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from gemmgen.ir.atoms import ATOMS
from gemmgen.ir.buffers import Buffer, Role, Space
from gemmgen.ir.dtypes import BYTES
from gemmgen.ir.nodes import (
    Contract,
    Copy,
    Kernel,
    Loop,
    Map,
    Pipeline,
    Program,
    Promote,
    Statement,
    Work,
)
from gemmgen.ir.operations import operations_of

Rule = Callable[[Copy | Contract], Copy | Contract]
Kind = TypeVar("Kind", bound=Statement)
Node = TypeVar("Node", bound=Buffer | Contract | Copy | Loop | Map | Pipeline | Work)


def changed_by(origin: str, node: Node, **changes: Any) -> Node:
    """``node`` with other fields, by the directive whose canonical text is ``origin``."""
    return replace(node, origins=(*node.origins, origin), **changes)


def edit_main(program: Program, rule: Callable[[Kernel], Kernel]) -> Program:
    """``program`` with its contracting kernel rewritten."""
    return replace(program, kernels=(rule(program.main), *program.kernels[1:]))


def edit_buffer(kernel: Kernel, name: str, rule: Callable[[Buffer], Buffer]) -> Kernel:
    """``kernel`` with one buffer's declaration rewritten."""
    buffers = tuple(rule(b) if b.name == name else b for b in kernel.buffers)
    return replace(kernel, buffers=buffers)


def edit_operations(kernel: Kernel, rule: Rule) -> Kernel:
    """``kernel`` with ``rule`` applied to every copy and contraction, at any depth."""

    def produce(steps: Pipeline) -> Pipeline:
        produced = tuple(c for c in map(rule, steps.produce) if isinstance(c, Copy))
        return replace(steps, produce=produced)

    kernel = edit_statements(edit_statements(kernel, Copy, rule), Contract, rule)
    kernel = edit_statements(kernel, Pipeline, produce)

    def steps(loop: Loop) -> Loop:
        return replace(
            loop, body=tuple(s if isinstance(s, Promote) else rule(s) for s in loop.body)
        )

    return edit_loops(kernel, steps)


def edit_statements(kernel: Kernel, kind: type[Kind], rule: Callable[[Kind], Statement]) -> Kernel:
    """``kernel`` with ``rule`` applied to each statement of its body that is of a ``kind``."""
    body = tuple(rule(s) if isinstance(s, kind) else s for s in kernel.body)
    return replace(kernel, body=body)


def edit_loops(kernel: Kernel, rule: Callable[[Loop], Loop]) -> Kernel:
    """``kernel`` with ``rule`` applied to every loop, in a pipeline or not."""
    kernel = edit_statements(kernel, Loop, rule)
    return edit_statements(
        kernel, Pipeline, lambda steps: replace(steps, consume=tuple(map(rule, steps.consume)))
    )


def copies(kernel: Kernel) -> tuple[Copy, ...]:
    """Every copy of ``kernel``, in order."""
    return tuple(o for o, _ in operations_of(kernel) if isinstance(o, Copy))


def wide_access(kernel: Kernel, tile: Buffer, *, required: bool = False) -> int:
    """The widest access to a shared tile: a store is wide if both sides share their last
    letter; tensor cores load their own lines width.  ``required``: without the stores that
    become scalar where rows are not aligned."""
    widths = [max(1, ATOMS[contraction(kernel).atom].line // BYTES[tile.dtype])]
    for copy in copies(kernel):
        same = kernel.buffer(copy.src).letters[-1] == tile.letters[-1]
        stored = copy.dst == tile.name and same and not (required and copy.vectors == "global")
        if copy.src == tile.name or stored:
            widths.append(copy.width)
    return max(widths)


def stores_vectors(kernel: Kernel, copy: Copy) -> bool:
    """Whether a wide copy into a shared tile writes it with vector accesses: what is contiguous in
    the source is contiguous in the tile, and its rows are aligned."""
    src, dst = kernel.buffer(copy.src), kernel.buffer(copy.dst)
    aligned = copy.vectors == "both" or dst.row % copy.width == 0
    return src.letters[-1] == dst.letters[-1] and aligned


def pipeline_of(kernel: Kernel) -> Pipeline | None:
    """The kernel's pipeline, if k is tiled."""
    return next((s for s in kernel.body if isinstance(s, Pipeline)), None)


def loads_boxes(kernel: Kernel) -> bool:
    """Whether TMA loads all tiles of a kernel that has tiles."""
    into = (copy for copy in copies(kernel) if kernel.buffer(copy.dst).space is Space.SHARED)
    return {copy.mode for copy in into} == {"tma"}


def tile_of(kernel: Kernel, tensor: str) -> Buffer | None:
    """The tile of an operand in shared memory, or the slice that an output is staged in."""
    found = (b for b in kernel.buffers if b.space is Space.SHARED and b.tensor == tensor)
    return next(found, None)


def fragment_of(kernel: Kernel, tensor: str) -> Buffer | None:
    """The registers that hold part of an operand."""
    found = (b for b in kernel.buffers if b.role is Role.FRAGMENT and b.tensor == tensor)
    return next(found, None)


def has_fragments(kernel: Kernel) -> bool:
    """Whether operands are read into registers before they are multiplied."""
    return any(buffer.role is Role.FRAGMENT for buffer in kernel.buffers)


def copy_outward(kernel: Kernel) -> Copy | None:
    """The copy by which the output leaves shared memory, if it passes through."""
    tiles = {s.dst for s in kernel.body if isinstance(s, Map)}
    return next((s for s in kernel.body if isinstance(s, Copy) and s.src in tiles), None)


def output_of(kernel: Kernel) -> str:
    """The tensor in global memory that the kernel writes."""
    outward = copy_outward(kernel)
    return outward.dst if outward else next(s.dst for s in kernel.body if isinstance(s, Map))


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
    return next(o for o, _ in operations_of(kernel) if isinstance(o, Contract))


def promotion_of(kernel: Kernel) -> Promote | None:
    """What promotes the accumulators of an instruction into the kernel's, if they are not the
    same."""
    return next((o for o, _ in operations_of(kernel) if isinstance(o, Promote)), None)


def begins_early(kernel: Kernel) -> bool:
    """Whether the first tile may begin before k = 0."""
    pipeline = pipeline_of(kernel)
    return pipeline is not None and pipeline.residue == "first"
