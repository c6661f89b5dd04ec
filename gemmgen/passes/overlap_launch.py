"""overlap_launch: begin while the preceding kernel still runs, and let the dependent one do so.

A launch on a stream begins when the preceding one has ended: its blocks leave, its writes are made
visible, the next blocks are set up.  With programmatic dependent launch (sm_90 on) the blocks of
this kernel are set up meanwhile: what needs no global memory (index arithmetic, barriers in shared
memory) comes before ``griddepcontrol.wait``, which every thread executes before it touches global
memory. After the main loop ``griddepcontrol.launch_dependents`` lets the dependent kernel begin.
The launcher asks for the overlap, and so do launches from Python.

    work [m=16, n=16]
==> overlap_launch
    work [m=16, n=16] overlap   # overlap_launch
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import ClassVar

from gemmgen.base.errors import Refusal
from gemmgen.base.record import record
from gemmgen.ir.atoms import ATOMS
from gemmgen.ir.edit import changed_by, contraction, edit_main
from gemmgen.ir.nodes import Kernel, Program
from gemmgen.ir.target import SINCE, has
from gemmgen.passes.base import Stated
from gemmgen.schedule.model import Gemm
from gemmgen.schedule.spec import DirectiveSpec, Elsewhere


@record
class OverlapLaunch:
    SPEC: ClassVar = DirectiveSpec(
        "overlap_launch",
        example="overlap_launch",
        elsewhere=Elsewhere(
            "Triton launch_pdl, CUTLASS launch_with_pdl",
            "launch_pdl launch_with_pdl pdl programmatic_dependent_launch griddepcontrol gdc_wait",
        ),
    )
    AFTER: ClassVar[tuple[str, ...]] = ("tile",)

    stated: Stated = field(compare=False)

    @staticmethod
    def read(stated: Stated, gemm: Gemm) -> OverlapLaunch:
        return OverlapLaunch(stated)

    def apply(self, program: Program) -> Program:
        if not has(program.target, SINCE["tma"]):
            raise Refusal(
                f"{program.target} has no programmatic dependent launch",
                at=self.stated.span,
                hint="target sm_90, or leave overlap_launch out",
            )

        atom = ATOMS[contraction(program.main).atom]
        if atom.in_place and atom.splits is not None:
            raise Refusal(
                "overlap_launch: a pre-pass splits the operands before this kernel",
                at=self.stated.span,
                notes=(
                    "decompose for via=wgmma writes their terms to memory: the pre-pass "
                    "would have to start early",
                ),
                hint="leave overlap_launch out",
            )

        def overlap(kernel: Kernel) -> Kernel:
            return replace(kernel, work=changed_by(self.stated.origin, kernel.work, overlap=True))

        return edit_main(program, overlap)
