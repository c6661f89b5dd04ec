"""unroll: the unroll factors of the loops along k.

``k=4`` is the loop over k within a tile (the contracted letter's own name): it is unrolled by four,
by one for ``k=1``, and completely for the tile's whole length, which is also the default if threads
have micro-tiles.  Fewer steps are shorter code, with more branches.  ``tile_k=4`` is the loop over
tiles: it is unrolled in rounds of 4 tiles, in which a tile's stage is a constant, and so are
addresses in shared memory; the last round may end early.  Rounds of more than some 2,000
multiply-adds of a thread lose more than they gain: the code exceeds the instruction cache.
``explain`` shows its size.

    pipeline k by 8
      loop k
        contract acc += A * B
==> unroll k=4 tile_k=2
    pipeline k by 8 unroll=2   # unroll k=4 tile_k=2
      loop k unroll=4   # unroll k=4 tile_k=2
        contract acc += A * B
"""

from __future__ import annotations

from dataclasses import field
from math import lcm
from typing import ClassVar

from gemmgen.base.errors import Refusal
from gemmgen.base.record import record
from gemmgen.base.source import remainder
from gemmgen.ir.buffers import Buffer, Space
from gemmgen.ir.edit import changed_by, edit_loops, edit_main, edit_statements, pipeline_of
from gemmgen.ir.nodes import Kernel, Pipeline, Program
from gemmgen.ir.target import MAX_TILE, WARP
from gemmgen.passes.base import Stated, tile_line
from gemmgen.schedule.model import Gemm
from gemmgen.schedule.roles import roles
from gemmgen.schedule.spec import ArgumentSpec, DirectiveSpec, Elsewhere

MOST_FMAS = 32768
"""The most multiply-adds of a thread in a round of ``tile_k``: half a MiB of instructions.
Measured on an NVIDIA H200, 8,192 of them (142 KiB) already take 2.4 times as long as 1,024."""


@record
class Unroll:
    SPEC: ClassVar = DirectiveSpec(
        "unroll",
        example="unroll k=4",
        arguments=(
            ArgumentSpec(
                "<k>",
                minimum=0,
                maximum=MAX_TILE,
                identity=0,
                fuzz=((1,), (2, 3, 4), (6, 8, 12, 16, 32)),
            ),
            ArgumentSpec("tile_<k>", maximum=64, identity=1, fuzz=((2,), (3, 4, 6, 12))),
        ),
        elsewhere=Elsewhere("Exo unroll_loop, CLBlast KWI", "unroll_loop unr ilp kwi"),
    )
    AFTER: ClassVar[tuple[str, ...]] = (
        *("tile", "cache_shared", "register_block", "tensor_core", "double_buffer"),
    )

    steps: int
    tiles: int
    letter: str
    stated: Stated = field(compare=False)

    @staticmethod
    def read(stated: Stated, gemm: Gemm) -> Unroll:
        _, _, k = roles(gemm)
        return Unroll(stated.integer(k) or 0, stated.integer(f"tile_{k}") or 1, k, stated)

    def apply(self, program: Program) -> Program:
        if not self.steps and self.tiles == 1:
            k = self.letter
            raise Refusal(
                "unroll names no loop",
                at=self.stated.span,
                hint=f"unroll {k}=4 for the loop over {k} in a tile, tile_{k}=2 for that over "
                "tiles",
            )
        lanes = WARP if program.intent.k_lanes else 1
        return edit_main(program, lambda kernel: self._unroll(kernel, lanes))

    def _unroll(self, kernel: Kernel, lanes: int) -> Kernel:
        """``lanes`` split the k elements of a step."""
        pipeline, origin = pipeline_of(kernel), self.stated.origin
        if self.steps and pipeline is not None:
            self._check_steps(kernel, pipeline)
        if self.tiles > 1:
            self._check_tiles(kernel, pipeline, lanes)
            kernel = edit_statements(
                kernel, Pipeline, lambda steps: changed_by(origin, steps, unroll=self.tiles)
            )
        if self.steps:
            kernel = edit_loops(kernel, lambda loop: changed_by(origin, loop, unroll=self.steps))
        return kernel

    def _check_steps(self, kernel: Kernel, pipeline: Pipeline) -> None:
        k, step, steps = self.letter, pipeline.step, self.steps
        unit = pipeline.consume[0].step
        ahead = [b for b in kernel.buffers if _alternates(b)]
        legal = [n for n in range(unit, step + 1, unit) if step % n == 0]
        legal = [n for n in legal if n // unit % 2 == 0 or n == step or not ahead]
        nearest = max((n for n in legal if n <= steps), default=legal[0])
        hint = f"{k}={nearest}, all of it" if nearest == step else f"{k}={nearest}, or {k}={step}"
        if step % steps:
            raise Refusal(
                f"unroll {k}={steps} does not divide the tile of {k}",
                at=self.stated.span_of(k),
                notes=(f"the tile has {k}={step}, and {remainder(step, steps)}",),
                hint=hint,
            )
        if steps % unit:
            raise Refusal(
                f"unroll {k}={steps} is not a multiple of tensor_core's step",
                at=self.stated.span_of(k),
                notes=(f"one takes {unit} along k, and {remainder(steps, unit)}",),
                hint=hint,
            )
        if steps not in legal:
            raise Refusal(
                f"unroll {k}={steps} would keep {ahead[0].name} in local memory",
                at=self.stated.span_of(k),
                notes=(
                    "its two slots alternate: with an odd factor the slot is not a compile-time "
                    "constant, and registers can't be indexed at run time",
                ),
                hint=f"{hint}; or no double_buffer {ahead[0].tensor}.register",
            )

    def _check_tiles(self, kernel: Kernel, pipeline: Pipeline | None, lanes: int) -> None:
        k, tiles = self.letter, self.tiles
        span = self.stated.span_of(f"tile_{k}")
        if pipeline is None:
            raise Refusal(
                f"unroll tile_{k}={tiles}: there is no loop over tiles of {k}",
                at=span,
                hint=f"{tile_line(kernel, k, 8)} splits the contraction",
            )
        tiles_of = (kernel.buffer(copy.dst) for copy in pipeline.produce)
        stages = {b.name: b.stages for b in tiles_of if b.space is Space.SHARED and b.stages > 1}
        once_round = lcm(*stages.values())
        if tiles % once_round:
            raise Refusal(
                f"unroll tile_{k}={tiles} is not a multiple of the stages",
                at=span,
                notes=(
                    ", ".join(f"{name} has {count} stages" for name, count in stages.items())
                    + f", and {remainder(tiles, once_round)}",
                ),
                hint=f"tile_{k}={-(-tiles // once_round) * once_round}",
            )
        if kernel.spread.lanes_per_piece > 1:  # an instruction makes 128 of a lane's multiply-adds
            return
        accumulators, depth = kernel.spread.registers, -(-pipeline.step // lanes)
        if tiles * depth * accumulators > MOST_FMAS:
            raise Refusal(
                f"unroll tile_{k}={tiles} makes the code of a thread too long",
                at=span,
                notes=(
                    f"{tiles} tiles x {depth} along k x {accumulators} accumulators = "
                    f"{tiles * depth * accumulators:,} multiply-adds, at most {MOST_FMAS:,}",
                ),
                hint=self._shorter(depth * accumulators, once_round),
            )

    def _shorter(self, fmas: int, once_round: int) -> str:
        most = MOST_FMAS // fmas // once_round * once_round
        return f"tile_{self.letter}={most}" if most > 1 else f"leave tile_{self.letter} out"


def _alternates(buffer: Buffer) -> bool:
    """Whether this is a fragment with two slots."""
    return buffer.space is Space.REGISTER and buffer.stages > 1
