"""pad: lengthen each row of a tile in shared memory, to spread a column over the banks.

Shared memory has 32 banks of 4 bytes.  Without a pad the elements of a column in rows of 32, 64 or
128 floats are in one bank and are read one after another.  A row with wide accesses must stay a
multiple of their width; with ``vectorize B.global`` alone any pad fits.

    tile A_shared[k=8, m=16] f32 of=A
==> pad A by=4
    tile A_shared[k=8, m=16] f32 of=A pad=4   # pad A by=4
"""

from __future__ import annotations

from dataclasses import field
from functools import reduce
from typing import ClassVar

from gemmgen.base.errors import Refusal
from gemmgen.base.record import record
from gemmgen.base.source import remainder
from gemmgen.ir.buffers import Buffer
from gemmgen.ir.edit import (
    changed_by,
    contraction,
    copies,
    edit_buffer,
    edit_main,
    wide_access,
)
from gemmgen.ir.nodes import Kernel, Program
from gemmgen.passes.base import OperandArgument, Stated, shared_tile
from gemmgen.schedule.model import Gemm
from gemmgen.schedule.spec import ArgumentSpec, DirectiveSpec, Elsewhere


@record
class Pad:
    SPEC: ClassVar = DirectiveSpec(
        "pad",
        example="pad A by=4",
        operands=("a", "b"),
        arguments=(
            ArgumentSpec(
                "by",
                minimum=0,
                maximum=1024,
                required=True,
                identity=0,
                elsewhere="padding offset amount",
                fuzz=((1, 3, 5, 33), (2, 6, 10), (4, 8, 16)),
            ),
        ),
        elsewhere=Elsewhere(
            "TVM storage_align, Halide align_storage, CUDA-CHiLL add_padding",
            "storage_align align_storage bound_storage resize_dim add_padding "
            "padding padto pad_shared",
        ),
    )
    AFTER: ClassVar[tuple[str, ...]] = ("tile", "cache_shared", "tensor_core", "vectorize")

    pads: tuple[OperandArgument, ...]
    stated: Stated = field(compare=False)

    @staticmethod
    def read(stated: Stated, gemm: Gemm) -> Pad:
        return Pad(stated.facts("by"), stated)

    def apply(self, program: Program) -> Program:
        return edit_main(program, lambda kernel: reduce(_pad, self.pads, kernel))


def _pad(kernel: Kernel, fact: OperandArgument) -> Kernel:
    tensor = fact.tensor
    hint = f"cache_shared {tensor}, or leave the pad out"
    tile = shared_tile(kernel, "pad", fact.operand, hint)
    letter, width = tile.letters[-1], wide_access(kernel, tile, required=True)
    row = tile.extent(letter)
    if (row + fact.value) % width:
        aligned = [by for by in range(1, fact.value + width + 1) if (row + by) % width == 0]
        nearest = min(aligned, key=lambda by: abs(by - fact.value))
        raise Refusal(
            f"pad {tensor} by={fact.value} breaks the {width}-wide accesses of {tile.name}",
            at=fact.span,
            notes=(
                f"a row is {row} + {fact.value} = {row + fact.value} elements along {letter}, "
                f"and {remainder(row + fact.value, width)}",
            ),
            hint=f"by={nearest}, the nearest that keeps every row aligned{_scalar(kernel, tile)}",
        )
    return edit_buffer(kernel, tile.name, lambda b: changed_by(fact.origin, b, pad=fact.value))


def _scalar(kernel: Kernel, tile: Buffer) -> str:
    """The rest of the hint where any pad would fit beside wide accesses of global memory alone."""
    if contraction(kernel).atom != "fma":
        return ""
    width = max(copy.width for copy in copies(kernel) if copy.dst == tile.name)
    return f", or vectorize {tile.tensor}.global width={width}" if width > 1 else ""
