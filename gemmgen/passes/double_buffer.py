"""double_buffer: fill the next buffer while the current one is used.

``A`` (or ``A.shared``) gives the shared tile ``stages`` buffers.  The next tile is loaded early,
into registers, and stored late, after the arithmetic, which hides the loads' latency.
``A.register`` does the same for fragments: fragment k + 1 is read while fragment k is multiplied.

``C``, where ``cache_shared C`` stages it, alternates between ``stages`` slices: with
``async_copy C via=tma`` one is stored while the next one is written, and where threads store it
there is one barrier for each slice in place of two.  ``stages`` divides the number of slices of a
tile, which is the number of rows of a micro-tile.

    tile A_shared[k=8, m=16] f32 of=A
==> double_buffer A
    tile A_shared[k=8, m=16] f32 of=A stages=2   # double_buffer A
"""

from __future__ import annotations

from dataclasses import field
from functools import reduce
from typing import ClassVar

from gemmgen.base.errors import Refusal
from gemmgen.base.record import record
from gemmgen.base.source import remainder
from gemmgen.ir.buffers import Buffer, slice_height
from gemmgen.ir.edit import changed_by, copy_outward, edit_buffer, edit_main, fragment_of
from gemmgen.ir.nodes import Kernel, Program
from gemmgen.passes.base import OperandArgument, Stated, micro_tile_line, shared_tile
from gemmgen.schedule.model import Gemm
from gemmgen.schedule.spec import ArgumentSpec, DirectiveSpec, Elsewhere


@record
class DoubleBuffer:
    SPEC: ClassVar = DirectiveSpec(
        "double_buffer",
        example="double_buffer A B",
        operands=("a", "b", "c"),
        hops=(
            ("a", ("shared", "register")),
            ("b", ("shared", "register")),
            ("c", ("shared",)),
        ),
        bare="shared",
        arguments=(
            ArgumentSpec(
                "stages",
                maximum=16,
                default=2,
                identity=1,
                fuzz=((2,), (3,), (4,)),
                elsewhere="num_stages stage depth",
            ),
        ),
        elsewhere=Elsewhere(
            "TVM software_pipeline, Halide ring_buffer, Triton num_stages",
            "software_pipeline software_pipeline_stage double_buffer_scope "
            "ring_buffer pipelined pipeline num_stages stages multibuffer "
            "range_multi_buffers fold_storage expand_dim prefetch multi_buffer",
        ),
    )
    AFTER: ClassVar[tuple[str, ...]] = ("tile", "cache_shared", "register_block", "tensor_core")

    buffers: tuple[OperandArgument, ...]
    stated: Stated = field(compare=False)

    @staticmethod
    def read(stated: Stated, gemm: Gemm) -> DoubleBuffer:
        return DoubleBuffer(stated.facts("stages", default=2), stated)

    def apply(self, program: Program) -> Program:
        return edit_main(program, lambda kernel: reduce(_buffer, self.buffers, kernel))


def _buffer(kernel: Kernel, fact: OperandArgument) -> Kernel:
    if fact.operand.hop == "register":
        buffer = _fragment(kernel, fact)
    else:
        hint = f"add cache_shared {fact.tensor}"
        buffer = shared_tile(kernel, "double_buffer", fact.operand, hint)
        if (outward := copy_outward(kernel)) and outward.src == buffer.name:
            _check_slices(kernel, fact, buffer)
    return edit_buffer(kernel, buffer.name, lambda b: changed_by(fact.origin, b, stages=fact.value))


def _check_slices(kernel: Kernel, fact: OperandArgument, slice_: Buffer) -> None:
    """A tile ends with the last slice buffer, so that the next tile begins with the first: the
    buffer of each row is a constant."""
    letter, stages = slice_.letters[0], fact.value
    height = slice_height(kernel.spread, letter)
    rows = kernel.spread.axis(letter).registers // height
    if rows % stages == 0:
        return
    each, of_them = ("row", "") if height == 1 else (f"{height} rows", " of them")
    most = max(n for n in range(1, stages) if rows % n == 0)
    fewer = f"stages={most}" if most > 1 else f"leave {fact.tensor} out of double_buffer"
    raise Refusal(
        f"double_buffer {fact.tensor}: {stages} slices are not used equally often",
        at=fact.span,
        notes=(
            f"{fact.tensor} leaves in a slice for each {each} of a micro-tile, and a thread has "
            f"{rows}{of_them} along {letter}: {remainder(rows, stages)}",
        ),
        hint=fewer,
    )


def _fragment(kernel: Kernel, fact: OperandArgument) -> Buffer:
    tensor = fact.tensor
    fragment = fragment_of(kernel, tensor)
    if fragment is None:
        hint = f"add {micro_tile_line(kernel)}, which reads fragments"
        if kernel.spread.collective:
            hint = f"leave the line out: tensor cores read {tensor} in shared memory"
        raise Refusal(
            f"double_buffer {tensor}.register: there are no fragments of {tensor}",
            at=fact.operand.span,
            hint=hint,
        )
    if fact.value != 2:
        raise Refusal(
            f"fragments are read one step ahead: stages={fact.value} has no use for the rest",
            at=fact.span,
            hint=f"double_buffer {tensor}.register (stages=2)",
        )
    return fragment
