"""bind: which letter of C runs along threadIdx.x.

Adjacent threads of a warp differ in threadIdx.x.  If that letter is contiguous in memory their
accesses are in the same 32-byte sectors (coalesced, the default); ``bind x=m y=n`` on a row-major C
is the uncoalesced textbook kernel.

    accumulator acc[m=8, n=32] f32 spread [m=1x1x8x1, n=1x1x32x1] x=n
==> bind x=m y=n
    accumulator acc[m=32, n=8] f32 spread [m=1x1x32x1, n=1x1x8x1] x=m   # bind x=m y=n
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import ClassVar

from gemmgen.base.errors import Refusal
from gemmgen.base.record import record
from gemmgen.ir.edit import edit_buffer, edit_main
from gemmgen.ir.nodes import Kernel, Program
from gemmgen.ir.problem import Problem
from gemmgen.passes.base import Stated
from gemmgen.passes.build import accumulator, default_work
from gemmgen.schedule.model import Gemm
from gemmgen.schedule.spec import ArgumentSpec, DirectiveSpec, Elsewhere


@record
class Bind:
    SPEC: ClassVar = DirectiveSpec(
        "bind",
        example="bind x=n",
        arguments=(
            ArgumentSpec("x", "word", choices=("<m>", "<n>"), required=True),
            ArgumentSpec("y", "word", choices=("<m>", "<n>")),
        ),
        elsewhere=Elsewhere(
            "TVM bind, Halide gpu_threads, CUDA-CHiLL cudaize",
            "gpu_blocks gpu_threads gpu_lanes cudaize map_forall_to_blocks coalesce "
            "map_nested_forall_to_threads reorder permute interchange reorder_loops "
            "loop_orders",
        ),
    )
    AFTER: ClassVar[tuple[str, ...]] = ()

    x: str
    y: str | None
    stated: Stated = field(compare=False)

    @staticmethod
    def read(stated: Stated, gemm: Gemm) -> Bind:
        x = stated.word("x")
        assert x is not None
        return Bind(x, stated.word("y"), stated)

    def apply(self, program: Program) -> Program:
        if self.x == self.y:
            problem = program.problem
            other = problem.n if self.x == problem.m else problem.m
            raise Refusal(
                f"bind gives {self.x} to both x and y",
                at=self.stated.span_of("y"),
                hint=f"y={other}, or leave y out: it is the other letter of C",
            )
        return edit_main(program, lambda kernel: self._rebind(kernel, program.problem))

    def _rebind(self, kernel: Kernel, problem: Problem) -> Kernel:
        work, spread = default_work(problem, self.x)
        origins = (self.stated.origin,)
        acc = replace(accumulator(problem, work, spread), origins=origins)
        return edit_buffer(replace(kernel, work=work), "acc", lambda _: acc)
