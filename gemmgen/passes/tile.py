"""tile: split C over the grid, and the contraction into steps.

A block computes a tile of C of this size; without ``register_block``, a thread per element.  ``k``
splits the contraction into steps of that many elements, whose operands can be staged in shared
memory (``cache_shared``).  Blocks read K(BM + BN) elements for BM x BN results, MNK(1/BM + 1/BN) in
all.

    work [m=8, n=32]
    accumulator acc[m=8, n=32] f32 spread [m=1x1x8x1, n=1x1x32x1] x=n
    loop k
      contract acc += A * B
==> tile m=16 n=16 k=8
    work [m=16, n=16]   # tile m=16 n=16 k=8
    accumulator acc[m=16, n=16] f32 spread [m=1x1x16x1, n=1x1x16x1] x=n   # tile m=16 n=16 k=8
    pipeline k by 8   # tile m=16 n=16 k=8
      loop k
        contract acc += A * B
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import ClassVar

from gemmgen.base.record import record
from gemmgen.ir.edit import changed_by, edit_buffer, edit_main, edit_statements
from gemmgen.ir.nodes import Kernel, Loop, Pipeline, Program
from gemmgen.ir.problem import Problem
from gemmgen.ir.target import MAX_TILE
from gemmgen.passes.base import Stated
from gemmgen.passes.build import spread_evenly
from gemmgen.schedule.model import Gemm
from gemmgen.schedule.roles import roles
from gemmgen.schedule.spec import ArgumentSpec, DirectiveSpec, Elsewhere

MULTIPLES = ((1, 2, 3, 4, 5, 6, 8, 12, 16, 32, 64),)
SMALLER = ("warp_tile", "register_block")
STEPS = ((1,), (3, 5, 7, 9, 13), (2, 6, 10, 14), (4, 8, 12), (16, 32, 48, 64), (96, 128, 256))
"""For the fuzzer: a tile as a multiple of what it consists of, and steps by their parity; the long
ones are for a warp's lanes."""


@record
class Tile:
    SPEC: ClassVar = DirectiveSpec(
        "tile",
        example="tile m=128 n=128 k=8",
        sizes=True,
        arguments=(
            ArgumentSpec("<m>", required=True, maximum=MAX_TILE, fuzz=MULTIPLES, times=SMALLER),
            ArgumentSpec("<n>", required=True, maximum=MAX_TILE, fuzz=MULTIPLES, times=SMALLER),
            ArgumentSpec("<k>", maximum=MAX_TILE, fuzz=STEPS),
        ),
        elsewhere=Elsewhere(
            "Halide tile, Triton BLOCK_M, CUTLASS threadblock tile, Kernel Tuner block_size_x",
            "split divide_loop split_iname gpu_tile tile_loops tile_loops_bottom_up "
            "block_sizes tile_using_for tile_using_forall tile_by_index shift_to "
            "block_tile threadblock threadblock_tile cta_tile tile_sizes block_m "
            "block_n block_k block_size_x block_size_y tile_size_x tile_size_y mwg "
            "nwg kwg block",
        ),
    )
    AFTER: ClassVar[tuple[str, ...]] = ("bind",)

    m: int
    n: int
    k: int | None
    stated: Stated = field(compare=False)

    @staticmethod
    def read(stated: Stated, gemm: Gemm) -> Tile:
        m, n, k = roles(gemm)
        rows, columns = stated.integer(m), stated.integer(n)
        assert rows is not None and columns is not None
        return Tile(rows, columns, stated.integer(k), stated)

    def apply(self, program: Program) -> Program:
        return edit_main(program, lambda kernel: self._tile(kernel, program.problem))

    def _tile(self, kernel: Kernel, problem: Problem) -> Kernel:
        origin, step = self.stated.origin, self.k
        sizes = {problem.m: self.m, problem.n: self.n}
        work, spread = spread_evenly(problem, kernel.spread.x, sizes)
        kernel = edit_buffer(
            kernel, "acc", lambda acc: changed_by(origin, acc, shape=work.tile, spread=spread)
        )
        kernel = replace(kernel, work=changed_by(origin, work))
        if step is None:
            return kernel
        return edit_statements(
            kernel, Loop, lambda loop: Pipeline(problem.k, step, (), (loop,), origins=(origin,))
        )
