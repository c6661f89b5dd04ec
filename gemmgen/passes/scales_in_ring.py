"""Scales that travel with their tiles: TMA copies the factors of a tile's rows into its stage.

A read of global memory takes longer than the products of a tile.  Factors of single rows are as
many as the tile has rows, and lie in a row of their own; those of blocks of rows are few, and stay
in L1.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from gemmgen.ir.blocked_letters import block
from gemmgen.ir.boxes import box_of, spaced
from gemmgen.ir.buffers import Buffer, Role
from gemmgen.ir.edit import edit_loops, edit_main, edit_statements, pipeline_of, promotion_of
from gemmgen.ir.nodes import Copy, Kernel, Loop, Pipeline, Program, Promote
from gemmgen.ir.problem import Scaling


def with_scales_in_ring(program: Program) -> Program:
    """``program`` with the factors of each tile's rows in its stage, where TMA copies that tile and
    can copy them."""
    pipeline = pipeline_of(program.main)
    if pipeline is None or promotion_of(program.main) is None:
        return program
    for scaling in program.problem.scales:
        copied = next((c for c in pipeline.produce if c.src == scaling.of), None)
        if copied is not None and copied.mode == "tma" and _is_a_row(program, scaling):
            program = edit_main(program, partial(_copied, scaling=scaling, copied=copied))
    return program


def _is_a_row(program: Program, scaling: Scaling) -> bool:
    """Whether the factors of neighbouring rows, or columns, are neighbours in memory."""
    last = scaling.tensor.contiguous
    return block(last) == 1 and last != program.problem.k


def _copied(kernel: Kernel, scaling: Scaling, copied: Copy) -> Kernel:
    tensor, tile = scaling.tensor, kernel.buffer(copied.dst)
    sizes = {x: tile.extent(x) if block(x) == 1 else 1 for x in tensor.letters}
    name, origins = f"{tensor.name}_shared", copied.origins
    shape = tuple((x, sizes[x]) for x in tensor.letters)
    row = Buffer(name, Role.TILE, tensor.dtype, shape, tensor.name, origins=origins)
    row = spaced(replace(row, stages=tile.stages))
    if box_of(row) is None:
        return kernel
    copy = Copy(name, tensor.name, mode="tma", origins=origins)
    kernel = edit_statements(
        kernel, Pipeline, lambda steps: replace(steps, produce=(*steps.produce, copy))
    )

    def scaled(loop: Loop) -> Loop:
        body = (_reading(s, tensor.name, name) if isinstance(s, Promote) else s for s in loop.body)
        return replace(loop, body=tuple(body))

    kernel = edit_loops(kernel, scaled)
    *buffers, accumulators = kernel.buffers
    return replace(kernel, buffers=(*buffers, row, accumulators))


def _reading(promotion: Promote, tensor: str, tile: str) -> Promote:
    """``promotion`` by the factors in ``tile`` in place of those of ``tensor``."""
    scales = tuple(tile if name == tensor else name for name in promotion.scales)
    return replace(promotion, scales=scales)
