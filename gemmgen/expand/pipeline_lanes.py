"""Split-K within a warp: each lane reads its own k elements of a step, and multiplies them.

Nothing is staged in shared memory.  All of a step's elements are read before the first is
multiplied, so that a thread has several reads outstanding. After the last step the lanes'
accumulators are added by shuffles, in a fixed order, and every lane has the result.
"""

from __future__ import annotations

from gemmgen.base.record import record
from gemmgen.expand.ring import over_tiles
from gemmgen.ir import names
from gemmgen.ir.control import Block
from gemmgen.ir.edit import contraction
from gemmgen.ir.expanded import LoadLaneSlice, Multiply, Timed, WarpReduce
from gemmgen.ir.expr import Int
from gemmgen.ir.nodes import Kernel, Pipeline, Program


@record
class LanePipeline:
    """The expansion of one pipeline whose k elements are distributed to lanes."""

    program: Program
    kernel: Kernel
    pipeline: Pipeline

    def expand(self) -> tuple[Timed, ...]:
        origin = names.tile_origin(self.pipeline.letter)
        contract, copies = contraction(self.kernel), self.pipeline.produce
        origins = tuple(dict.fromkeys(o for copy in copies for o in copy.origins))
        body = (
            Block(
                "load the lane's k elements of the step", origins, (LoadLaneSlice(copies, origin),)
            ),
            Block(
                "multiply them",
                contract.origins,
                (Multiply(contract, Int(0), origin),),
            ),
        )
        spread = self.kernel.accumulator.origins
        split = tuple(o for o in spread if o.startswith("split_k"))
        add = Block("sum over the lanes of the warp", split, (WarpReduce(),))
        return (over_tiles(self.program, self.kernel, self.pipeline, body), add)
