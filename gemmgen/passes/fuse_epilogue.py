"""fuse_epilogue: compute C from the accumulators while they are still in registers.

The expression is part of the problem. Unfused, a first kernel stores the accumulators to a
temporary matrix and a second one reads it back and computes the expression: two passes over M x N
elements that fusion saves.

    kernel gemm
      map unfused = acc
    kernel gemm_epilogue
      copy acc = unfused
      map C = relu(acc + bias[n])
==> fuse_epilogue relu(acc + bias[n])
    kernel gemm
      map C = relu(acc + bias[n])   # fuse_epilogue relu(acc + bias[n])
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import ClassVar

from gemmgen.base.record import record
from gemmgen.ir.boxes import spaced, with_type
from gemmgen.ir.edit import changed_by, copy_outward, edit_buffer, edit_statements
from gemmgen.ir.exprtext import format_expression
from gemmgen.ir.nodes import Copy, Map, Program
from gemmgen.passes.build import TEMPORARY
from gemmgen.schedule.model import Epilogue
from gemmgen.schedule.spec import DirectiveSpec, Elsewhere


@record
class FuseEpilogue:
    SPEC: ClassVar = DirectiveSpec(
        "fuse_epilogue",
        example="fuse_epilogue relu(acc + bias[n])",
        elsewhere=Elsewhere(
            "TVM reverse_compute_inline, CUTLASS epilogue",
            "reverse_compute_inline reverse_compute_at fuse_reduction_epilogue "
            "compute_at compute_inline fuse_into_containing_op fuse_kernels fuse "
            "epilogue evt activation bias",
        ),
    )
    AFTER: ClassVar[tuple[str, ...]] = ()

    stated: Epilogue = field(compare=False)

    def apply(self, program: Program) -> Program:
        main, epilogue = program.kernels
        final = next(s for s in epilogue.body if isinstance(s, Map))
        origin = f"fuse_epilogue {format_expression(final.value)}"
        destination = epilogue.buffer(final.dst)

        outward = copy_outward(main)

        def store(statement: Map) -> Map:
            dst = final.dst if outward is None else statement.dst
            return changed_by(origin, statement, dst=dst, value=final.value)

        fused = edit_buffer(main, TEMPORARY, lambda _: destination)
        fused = edit_statements(fused, Map, store)
        if outward is not None:
            stored = replace(outward, dst=final.dst)
            fused = edit_statements(fused, Copy, lambda c: stored if c == outward else c)
            retyped = with_type(main.buffer(outward.src), destination.dtype)
            slice_ = spaced(retyped) if outward.mode == "tma" else retyped
            fused = edit_buffer(fused, outward.src, lambda _: slice_)
        return replace(program, kernels=(fused,))
