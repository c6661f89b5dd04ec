"""persistent: as many blocks as the GPU holds at once, each of which walks over tiles.

Without it a block computes one tile and ends, and the GPU starts another in its place.  A
persistent kernel is launched with ``min(tiles, multiprocessors * blocks)`` blocks, where the
multiprocessors are those of the GPU at hand and ``blocks`` are what ``launch_bounds`` says (without
it 2 if two fit, else 1).  Block b takes the tiles b, b + blocks, b + 2 * blocks ... in the order of
``raster``: what depends on the block's threads alone is computed once, not for each tile.  With
``async_copy via=tma`` the ring of stages continues from tile to tile, and with ``warp_specialize``
the producer copies the next tile's first steps during the epilogue.

    work [m=16, n=16]
==> persistent
    work [m=16, n=16] persistent   # persistent
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import ClassVar

from gemmgen.base.errors import Refusal
from gemmgen.base.record import record
from gemmgen.ir.edit import changed_by, edit_main, pipeline_of
from gemmgen.ir.nodes import Kernel, Pipeline, Program
from gemmgen.passes.base import Stated
from gemmgen.schedule.model import Gemm
from gemmgen.schedule.spec import DirectiveSpec, Elsewhere


@record
class Persistent:
    SPEC: ClassVar = DirectiveSpec(
        "persistent",
        example="persistent",
        elsewhere=Elsewhere(
            "CUTLASS PersistentScheduler, Triton persistent matmul, TileLang T.Persistent",
            "persistent_kernel persistentscheduler tile_scheduler static_persistent",
        ),
    )
    AFTER: ClassVar[tuple[str, ...]] = ("tile", "async_copy", "unroll", "split_k")

    stated: Stated = field(compare=False)

    @staticmethod
    def read(stated: Stated, gemm: Gemm) -> Persistent:
        return Persistent(stated)

    def apply(self, program: Program) -> Program:
        self._check(program.main)

        def walk(kernel: Kernel) -> Kernel:
            work = changed_by(self.stated.origin, kernel.work, persistent=True)
            return replace(kernel, work=work)

        return edit_main(program, walk)

    def _check(self, kernel: Kernel) -> None:
        """Refuses blocks that share a tile, and stages that are constants of one tile."""
        parts, pipeline = kernel.work.parts, pipeline_of(kernel)
        if parts > 1:
            raise Refusal(
                f"a persistent block computes whole tiles, and split_k gives a tile {parts} blocks",
                at=self.stated.span,
                notes=(
                    f"{parts - 1} of the {parts} exit once they have written their partial sums, "
                    "before their next tile",
                ),
                hint="split_k parts=1, or remove the line",
            )
        if pipeline is not None and any(copy.mode == "tma" for copy in pipeline.produce):
            self._check_ring(kernel, pipeline)

    def _check_ring(self, kernel: Kernel, pipeline: Pipeline) -> None:
        """Refuses rounds, each of which begins at stage 0: TMA's ring goes on."""
        if pipeline.unroll == 1:
            return
        k, steps = pipeline.letter, pipeline.consume[0].unroll
        tile = kernel.buffer(pipeline.produce[0].dst)
        only = f"unroll {k}={steps}" if steps else "leave unroll out"
        raise Refusal(
            f"unroll tile_{k}={pipeline.unroll} begins each tile of C at stage 0, and a persistent "
            f"block's tile may begin at any of the {tile.stages} of {tile.name}",
            at=self.stated.span,
            notes=(
                "the barriers of TMA count on from tile to tile, and a tile takes any "
                "number of steps",
            ),
            hint=f"{only}, or remove the line",
        )
