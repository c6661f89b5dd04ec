"""cache_shared: stage a step's tile of an operand in shared memory.

All threads of the block load the tile together, once, and read it from shared memory.  The letters
name the layout there, the last one contiguous: ``A[k, m]`` transposes a row-major A, so that a
thread's rows become contiguous.  Elements outside the matrix become zero, which adds nothing to a
sum.

    loop k
      contract acc += A * B
==> cache_shared A[k, m]
    shared A_shared[k=8, m=16] f32   # cache_shared A[k, m]
    copy A_shared = A   # cache_shared A[k, m]
    loop k
      contract acc += A_shared * B
"""

from __future__ import annotations

from dataclasses import field, replace
from functools import reduce
from typing import ClassVar

from gemmgen.base.errors import Refusal
from gemmgen.base.record import record
from gemmgen.ir.buffers import Buffer, Space
from gemmgen.ir.dtypes import BYTES
from gemmgen.ir.edit import edit_main, edit_operations, edit_statements, pipeline_of
from gemmgen.ir.nodes import Contract, Copy, Kernel, Pipeline, Program
from gemmgen.passes.base import OperandArgument, Stated, tile_line
from gemmgen.schedule.model import Schedule
from gemmgen.schedule.spec import DirectiveSpec, Elsewhere


@record
class CacheShared:
    SPEC: ClassVar = DirectiveSpec(
        "cache_shared",
        example="cache_shared A[k, m] B",
        operands=("a", "b"),
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
    def read(stated: Stated, schedule: Schedule) -> CacheShared:
        return CacheShared(stated.facts("none"), stated)

    def apply(self, program: Program) -> Program:
        if pipeline_of(program.main) is None:
            raise self._unsplit(program)
        return edit_main(program, lambda kernel: reduce(_stage, self.tiles, kernel))

    def _unsplit(self, program: Program) -> Refusal:
        problem, work = program.problem, program.main.work
        operand = self.tiles[0].operand
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
    tile = Buffer(name, Space.SHARED, dtype, shape, origins=origins)
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
