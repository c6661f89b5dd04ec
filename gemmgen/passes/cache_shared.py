"""cache_shared: stage a step's tile of an operand in shared memory, or stage C there for its
epilogue store.

All threads of the block load the tile together, once, and read it from shared memory.  The letters
name the layout there, the last one contiguous: ``A[k, m]`` transposes a row-major A, so that a
thread's rows become contiguous.  Elements outside the matrix become zero, which adds nothing to a
sum.

C leaves through shared memory: each thread writes one row of its micro-tile to it, then
neighbouring threads store neighbouring elements, whatever each of them holds; then the next row.
Stores to global memory are then coalesced, and as wide as ``vectorize C`` says.

    loop k
      contract acc += A * B
    map C = alpha * acc + beta * C[m, n]
==> cache_shared A[k, m] C
    tile A_shared[k=8, m=16] f32 of=A   # cache_shared A[k, m] C[m, n]
    staging C_shared[m=16, n=16] f32 of=C   # cache_shared A[k, m] C[m, n]
    copy A_shared = A   # cache_shared A[k, m] C[m, n]
    loop k
      contract acc += A_shared * B
    map C_shared = alpha * acc + beta * C[m, n]   # cache_shared A[k, m] C[m, n]
    copy C = C_shared   # cache_shared A[k, m] C[m, n]
"""

from __future__ import annotations

from dataclasses import field, replace
from functools import reduce
from typing import ClassVar

from gemmgen.base.errors import Refusal
from gemmgen.base.record import record
from gemmgen.base.source import indexed
from gemmgen.ir.buffers import Buffer, Role, slice_of
from gemmgen.ir.dtypes import BYTES
from gemmgen.ir.edit import (
    changed_by,
    edit_main,
    edit_operations,
    edit_statements,
    output_of,
    pipeline_of,
)
from gemmgen.ir.nodes import Contract, Copy, Kernel, Map, Pipeline, Program
from gemmgen.ir.problem import Problem
from gemmgen.passes.base import OperandArgument, Stated, tile_line
from gemmgen.schedule.model import Gemm, Operand
from gemmgen.schedule.spec import DirectiveSpec, Elsewhere


@record
class CacheShared:
    SPEC: ClassVar = DirectiveSpec(
        "cache_shared",
        example="cache_shared A[k, m] B",
        operands=("a", "b", "c"),
        layout=True,
        sizes=True,
        elsewhere=Elsewhere(
            "TVM cache_read, Exo stage_mem",
            "cache_read stage_mem read_at copy_to_shared add_prefetch promote "
            "alloc_shared set_memory bufferize_to_allocation cache_local shared "
            "smem shared_memory cache sa sb",
        ),
    )
    AFTER: ClassVar[tuple[str, ...]] = ("tile",)

    tiles: tuple[OperandArgument, ...]
    stated: Stated = field(compare=False)

    @staticmethod
    def read(stated: Stated, gemm: Gemm) -> CacheShared:
        return CacheShared(stated.facts("none"), stated)

    def apply(self, program: Program) -> Program:
        problem = program.problem
        inputs = [tile for tile in self.tiles if tile.tensor != problem.c.name]
        outputs = [tile for tile in self.tiles if tile.tensor == problem.c.name]
        if inputs and pipeline_of(program.main) is None:
            raise self._unsplit(program, inputs[0].operand)
        for tile in outputs:
            _check_layout(problem, tile.operand)
        staged = edit_main(program, lambda kernel: reduce(_stage, inputs, kernel))
        return edit_main(staged, lambda kernel: reduce(_stage_output, outputs, kernel))

    def _unsplit(self, program: Program, operand: Operand) -> Refusal:
        problem, work = program.problem, program.main.work
        free = problem.m if operand.tensor == problem.a.name else problem.n
        rows, capital = work.size(free), problem.extent(problem.k)
        size = BYTES[problem.dtype(operand.tensor)]
        return Refusal(
            f"cache_shared {operand.tensor} needs a tile of {problem.k} to stage",
            at=operand.span,
            notes=(
                f"{problem.k} is not split, so the tile would be {rows} x {capital}: "
                f"{rows * size * 4096:,} bytes of shared memory at {capital} = 4096",
            ),
            hint=tile_line(program.main, problem.k, 8),
        )


def _stage(kernel: Kernel, fact: OperandArgument) -> Kernel:
    tensor, order = fact.tensor, fact.operand.indices
    assert order is not None
    pipeline = pipeline_of(kernel)
    assert pipeline is not None
    name = f"{tensor}_shared"
    sizes = dict(kernel.work.tile) | {pipeline.letter: pipeline.step}
    shape = tuple((letter, sizes[letter]) for letter in order)
    origins, dtype = (fact.origin,), kernel.buffer(tensor).dtype
    tile = Buffer(name, Role.TILE, dtype, shape, tensor, origins=origins)
    copy = Copy(name, tensor, origins=origins)

    def read_the_tile(operation: Copy | Contract) -> Copy | Contract:
        if not isinstance(operation, Contract):
            return operation
        a, b = (name if side == tensor else side for side in (operation.a, operation.b))
        return replace(operation, a=a, b=b)

    kernel = edit_operations(kernel, read_the_tile)
    kernel = edit_statements(
        kernel, Pipeline, lambda steps: replace(steps, produce=(*steps.produce, copy))
    )
    return replace(kernel, buffers=(*kernel.buffers[:-1], tile, kernel.buffers[-1]))


def _stage_output(kernel: Kernel, fact: OperandArgument) -> Kernel:
    """The output by way of shared memory, to which threads write a row of each micro-tile."""
    order, output = fact.operand.indices, output_of(kernel)
    assert order is not None
    name, origins = f"{fact.tensor}_shared", (fact.origin,)
    shape, dtype = slice_of(kernel.spread, *order), kernel.buffer(output).dtype
    tile = Buffer(name, Role.STAGING, dtype, shape, fact.tensor, origins=origins)
    kernel = edit_statements(kernel, Map, lambda final: changed_by(fact.origin, final, dst=name))
    body = (*kernel.body, Copy(output, name, origins=origins))
    return replace(kernel, body=body, buffers=(*kernel.buffers[:-1], tile, kernel.buffers[-1]))


def _check_layout(problem: Problem, operand: Operand) -> None:
    """Refuses an output that would be transposed in shared memory."""
    order = problem.matrix(problem.c.letters)
    if operand.indices == order:
        return
    here = indexed(operand.tensor, order)
    raise Refusal(
        f"{operand.tensor} leaves shared memory in the order of global memory",
        at=operand.span,
        notes=(
            f"{here} is contiguous along {order[-1]}; rows along {order[0]} would be read back "
            "a column at a time",
        ),
        hint=f"cache_shared {operand.tensor}",
    )
