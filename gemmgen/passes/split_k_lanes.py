"""``split_k within=warp``: the lanes of a warp split K of their accumulators."""

from __future__ import annotations

from dataclasses import field, replace

from gemmgen.base.errors import Refusal
from gemmgen.base.record import record
from gemmgen.base.source import Blame, Span, indexed, remainder
from gemmgen.ir.buffers import AxisSpread, Buffer, Space, Spread
from gemmgen.ir.dtypes import BYTES, widths
from gemmgen.ir.edit import (
    changed_by,
    contraction,
    copy_outward,
    edit_main,
    edit_statements,
    pipeline_of,
)
from gemmgen.ir.nodes import Copy, Loop, Pipeline, Program
from gemmgen.ir.problem import Tensor
from gemmgen.ir.target import WARP
from gemmgen.passes.base import tile_line
from gemmgen.passes.fragments import fragment, with_spread
from gemmgen.schedule.model import NOWHERE


@record
class SplitKLanes:
    """The rewrite: fragments become whole steps of an operand, distributed to lanes along k."""

    origin: str
    span: Span = field(default=NOWHERE, compare=False)

    def apply(self, program: Program) -> Program:
        kernel = program.main
        pipeline = pipeline_of(kernel)
        assert pipeline is not None
        self._check_rest(program, pipeline)
        k_layout = self._k_layout(program, pipeline.step)
        problem, main = program.problem, contraction(kernel)
        spread = replace(kernel.spread, k_layout=k_layout)

        def registers(tensor: Tensor, letter: str) -> Buffer:
            own = Spread((spread.axis(letter), k_layout), spread.x)
            return fragment(tensor.name, tensor.dtype, own, self.origin)

        a, b = registers(problem.a, problem.m), registers(problem.b, problem.n)
        produce = (self._copy(program, problem.a, a), self._copy(program, problem.b, b))
        loop = Loop(problem.k, (changed_by(self.origin, main, a=a.name, b=b.name),))
        old = {main.a, main.b} - {problem.a.name, problem.b.name}
        kernel = replace(kernel, buffers=tuple(x for x in kernel.buffers if x.name not in old))
        kernel = edit_statements(
            kernel, Pipeline, lambda steps: replace(steps, produce=produce, consume=(loop,))
        )
        return edit_main(program, lambda _: with_spread(kernel, (a, b), spread, self.origin))

    def _copy(self, program: Program, tensor: Tensor, held: Buffer) -> Copy:
        width, origins = _width(program, tensor)
        return Copy(held.name, tensor.name, width, origins=(self.origin, *origins))

    def _k_layout(self, program: Program, step: int) -> AxisSpread:
        """The distribution of a step's k elements: pieces as wide as the widest read."""
        problem = program.problem
        wanted = [(tensor, _width(program, tensor)[0]) for tensor in (problem.a, problem.b)]
        for tensor, width in wanted:
            if width > 1 and width not in widths(tensor.dtype):
                size = BYTES[tensor.dtype]
                raise Refusal(
                    f"width={width} is not the width of a memory access",
                    at=Blame("vectorize", operand=tensor.name, hop="global"),
                    notes=(f"{width} x {size} bytes = {width * size}",),
                    hint=" or ".join(f"width={w}" for w in widths(tensor.dtype)),
                )
        width = max(width for _, width in wanted)
        if step % (WARP * width):
            raise Refusal(
                f"a step of {step} along k can't be distributed over the {WARP} lanes of a warp",
                at=self.span,
                notes=(f"each takes {width} at a time: {remainder(step, WARP * width)}",),
                hint=tile_line(program.main, problem.k, -(-step // (WARP * width)) * WARP * width),
            )
        return AxisSpread(problem.k, 1, step // (WARP * width), WARP, width)

    def _check_rest(self, program: Program, pipeline: Pipeline) -> None:
        """Refuses directives that distribute k, tiles or fragments in another way."""
        kernel = program.main
        if program.problem.scales:
            scaling = program.problem.scales[0]
            raise self._refusal(
                "adds elements from all along k in each lane",
                f"{scaling.tensor.text} scales blocks of {scaling.of} along k",
                "split_k parts=2",
            )
        if pipeline.produce:
            raise self._refusal(
                "reads each lane's k elements straight from global memory",
                f"{pipeline.produce[0].src} is staged in shared memory (cache_shared)",
                "leave cache_shared out, and what depends on it",
            )
        if copy_outward(kernel):
            raise self._refusal(
                "gives each warp the accumulators of a micro-tile, which its first lane stores",
                "cache_shared takes rows of the threads' micro-tiles through shared memory",
                f"leave {program.problem.c.name} out of cache_shared",
            )
        if kernel.spread.by_warp:
            raise self._refusal(
                "gives each warp the accumulators of a micro-tile",
                "warp_tile distributes a tile over its lanes",
                "leave warp_tile out",
            )
        for loop in pipeline.consume:
            if loop.unroll:
                raise self._refusal(
                    "unrolls a lane's k elements", "unroll sets another factor", "leave unroll out"
                )
            wide = [s for s in loop.body if isinstance(s, Copy) and s.width > 1]
            for copy in wide:
                problem, name = program.problem, copy.src
                (letters,) = (t.letters for t in (problem.a, problem.b) if t.name == name)
                along, k = letters[-1], problem.k
                swapped = ({along: k, k: along}.get(letter, letter) for letter in letters)
                raise self._refusal(
                    f"reads contiguous elements along {k}",
                    f"vectorize reads {copy.width} of {indexed(name, letters)} along {along}",
                    f"leave {name} out of vectorize, or store it as {indexed(name, swapped)}",
                )
        for buffer in kernel.buffers:
            if buffer.space is Space.REGISTER and buffer.stages > 1:
                raise self._refusal(
                    "reads a step's k elements at once",
                    f"double_buffer reads {buffer.name} one step ahead",
                    "leave double_buffer out",
                )

    def _refusal(self, does: str, but: str, hint: str) -> Refusal:
        return Refusal(f"split_k within=warp {does}", at=self.span, notes=(but,), hint=hint)


def _width(program: Program, tensor: Tensor) -> tuple[int, tuple[str, ...]]:
    """Elements that a lane reads along k at once, and the statements that say so."""
    for name, width, origin in program.intent.k_reads:
        if name == tensor.name:
            return width, (origin,)
    return 1, ()
