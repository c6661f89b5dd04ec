"""decompose: f32 from products of bf16 or f16 terms on tensor cores (bf16x3, f16x3).

Each element is the sum of three terms: x0 = bf16(x), x1 = bf16(x - x0), x2 = bf16(x - x0 - x1).
They have all 24 bits of x if |x| is at least 2^-110 or 0; below that the last bits are lost, as
bf16 ends.  Six of the nine products of terms are computed, small ones first: (2, 0) (1, 1) (0, 2)
(1, 0) (0, 1) (0, 0); the others are at most 2^-24 of |a b|, f32's unit roundoff.  ``products=9``
computes all.  For ``tensor_core via=mma`` elements are split as fragments are read from shared
memory; memory and tiles stay f32.  For ``via=wgmma`` a pre-pass writes the terms of A and B to
memory, 6 bytes per element, and a stage holds a tile of each term.  Accumulators that are not
finite are recomputed with FMAs, so infinities and NaNs are those of f32.

Tensor cores truncate where f32 rounds, which adds up along k, so ``tensor_core`` needs
``promote``: every 64 terms, say, its accumulator is added to one in f32.  The error is then at most
(18 promote + K / promote + 1) 2^-24 of the sum of |A * B|; the header of an emitted file has it.

``into=f16`` has two terms and computes three of their four products, nearly twice as fast and
less accurate: a pre-pass multiplies each row of A and column of B by a power of two, so that its
largest element is near the end of f16's range, and the accumulators are multiplied by the inverses.
It needs ``via=wgmma``; the header states the bound.

With ``via=mma`` tiles are K-major in shared memory; ``cache_shared B[n, k]`` transposes others.
``into=f32`` equals no directive.

    loop k
      contract acc += A_shared * B_shared
==> decompose into=bf16
    loop k
      contract acc += A_shared * B_shared into=bf16 parts=3 products=6   # decompose into=bf16
"""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar, cast

from gemmgen.base.errors import Refusal
from gemmgen.base.record import record
from gemmgen.base.source import Blame
from gemmgen.ir.atoms import Via
from gemmgen.ir.decompositions import DECOMPOSITIONS, WHOLE, Decomposition
from gemmgen.ir.dtypes import DType
from gemmgen.ir.edit import changed_by, edit_main, edit_operations, pipeline_of
from gemmgen.ir.nodes import Contract, Copy, Program
from gemmgen.ir.problem import Problem
from gemmgen.passes.base import Stated
from gemmgen.passes.promote import USUAL, usual_interval
from gemmgen.schedule.model import Gemm
from gemmgen.schedule.spec import ArgumentSpec, DirectiveSpec, Elsewhere

_PRODUCTS = tuple(count for each in DECOMPOSITIONS.values() for count in each.products)
INSTRUCTION = Blame("tensor_core", "via")


@record
class Decompose:
    SPEC: ClassVar = DirectiveSpec(
        "decompose",
        example="decompose into=bf16 parts=3 products=6",
        arguments=(
            ArgumentSpec(
                "into", "word", choices=(*DECOMPOSITIONS, WHOLE), required=True, identity=WHOLE
            ),
            ArgumentSpec(
                *("parts", "int", 1, max(each.parts for each in DECOMPOSITIONS.values())),
                follows="into",
                usual=((WHOLE, 1), *((into, each.parts) for into, each in DECOMPOSITIONS.items())),
                fuzz=(tuple(each.parts for each in DECOMPOSITIONS.values()),),
            ),
            ArgumentSpec(
                *("products", "int", 1, max(_PRODUCTS)),
                follows="into",
                usual=(
                    (WHOLE, 1),
                    *((into, each.products[0]) for into, each in DECOMPOSITIONS.items()),
                ),
                fuzz=tuple((count,) for count in _PRODUCTS),
            ),
        ),
        elsewhere=Elsewhere(
            "cuBLAS BF16x9 emulation, CUTLASS 3xTF32",
            "bf16x9 bf16x6 bf16x3 3xtf32 tf32x3 emulate_fp32 emulation fast_f32 ozaki",
        ),
    )
    AFTER: ClassVar[tuple[str, ...]] = ("tile", "cache_shared")

    into: DType
    parts: int
    products: int
    stated: Stated = field(compare=False)

    @staticmethod
    def read(stated: Stated, gemm: Gemm) -> Decompose:
        into = cast(DType, stated.word("into"))
        usual = DECOMPOSITIONS.get(into, Decomposition(1, (1,)))
        parts, products = stated.integer("parts"), stated.integer("products")
        return Decompose(into, parts or usual.parts, products or usual.products[0], stated)

    def apply(self, program: Program) -> Program:
        if self.into == WHOLE:
            return program
        self._check_terms()
        self._check_instruction(program)
        self._check_extents(program)
        self._check_types(program.problem)
        how = {"into": self.into, "parts": self.parts, "products": self.products}

        def split(operation: Copy | Contract) -> Copy | Contract:
            if isinstance(operation, Contract):
                return changed_by(self.stated.origin, operation, **how)
            return operation

        return edit_main(program, lambda kernel: edit_operations(kernel, split))

    # Refusals.

    def _check_instruction(self, program: Program) -> None:
        batch, via = program.problem.batch, program.intent.via
        if program.problem.scales:
            scaling = program.problem.scales[0]
            raise Refusal(
                "decompose multiplies terms of whole elements, and these have scales of blocks",
                at=self.stated.span,
                notes=(f"{scaling.tensor.text} scales blocks of {scaling.of}",),
                hint="leave decompose out",
            )
        if via is None:
            raise Refusal(
                "decompose splits operands of tensor cores, and the schedule uses none",
                at=self.stated.span,
                hint=f"add tensor_core {_instructions(program)}, or leave decompose out",
            )
        if via == "wmma":
            raise Refusal(
                f"decompose splits what lanes hold, and tensor_core via={via} takes operands "
                "as the hardware deals them out",
                at=INSTRUCTION,
                hint="via=mma, or leave decompose out",
            )
        if via == "mma" and DECOMPOSITIONS[self.into].scaled:
            raise Refusal(
                f"decompose into={self.into} scales rows by a power of two in a pre-pass, and "
                "tensor_core via=mma splits what lanes hold, without one",
                at=INSTRUCTION,
                hint="via=wgmma, or decompose into=bf16",
            )
        if via == "wgmma" and batch:
            raise Refusal(
                "decompose for via=wgmma splits one matrix per operand in global memory",
                at=INSTRUCTION,
                notes=(f"the gemm has a matrix for each {' and '.join(batch)}",),
                hint="via=mma, or leave decompose out",
            )

    def _check_extents(self, program: Program) -> None:
        """Planes in memory have their own rows and columns."""
        depth = program.problem.extent(program.problem.k)
        for fact in program.facts:
            equal = fact.equals is not None and depth in (fact.name, fact.equals)
            if equal and program.intent.via == "wgmma":
                raise Refusal(
                    "decompose for via=wgmma has parts in memory, whose planes have "
                    f"{depth} as one side and an extent of C as the other",
                    at=INSTRUCTION,
                    notes=(f"assume says {fact.name} == {fact.equals}",),
                    hint="via=mma, or leave decompose out",
                )

    def _check_types(self, problem: Problem) -> None:
        others = [tensor for tensor in (problem.a, problem.b) if tensor.dtype != WHOLE]
        if others:
            raise Refusal(
                f"decompose splits {WHOLE}, and {others[0].name} is {others[0].dtype}",
                at=self.stated.span,
                hint=f"dtype {problem.a.name}={WHOLE} {problem.b.name}={WHOLE}, "
                "or leave decompose out",
            )

    def _check_terms(self) -> None:
        usual = DECOMPOSITIONS[self.into]
        parts, products = usual.parts, usual.products
        if self.parts != parts:
            raise Refusal(
                f"decompose into={self.into} has {parts} terms, not {self.parts}",
                at=self.stated.span_of("parts"),
                hint=f"parts={parts}",
            )
        if self.products not in products:
            raise Refusal(
                f"decompose into={self.into} multiplies {' or '.join(map(str, products))} "
                f"products of terms, not {self.products}",
                at=self.stated.span_of("products"),
                notes=(f"{parts} terms of each operand have {parts} x {parts} products",),
                hint=" or ".join(f"products={count}" for count in products),
            )


def _instructions(program: Program) -> str:
    """The arguments of ``tensor_core`` that go with ``decompose``, for a hint."""
    pipeline, ways = pipeline_of(program.main), cast(tuple[Via, ...], ("mma", "wgmma"))
    step = pipeline.step if pipeline else USUAL
    return " or ".join(f"via={via} promote={usual_interval(via, step)}" for via in ways)
