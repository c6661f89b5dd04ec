"""residue: which tile of the contraction is the partial one.

K is rarely a multiple of the tile.  By default the last tile is partial, and since any tile may be
the last, each copy has a K predicate.  With ``k=first`` the partial K tile is peeled to the front:
it starts at K % BK - BK and zero-fills what precedes k = 0, so that steady-state tiles need no K
predicate.  The same products are added in the same order, after zeros instead of before them.  It
needs prefetched tiles (``double_buffer``).  Wide accesses along k need ``assume K % 4 == 0``, or
tiles would start misaligned; so do boxes of TMA, at multiples of 16 bytes.

    pipeline k by 16
==> residue k=first
    pipeline k by 16 residue=first   # residue k=first
"""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar, get_args

from gemmgen.base.errors import Refusal
from gemmgen.base.record import record
from gemmgen.ir import nodes
from gemmgen.ir.assumptions import divides
from gemmgen.ir.buffers import Buffer
from gemmgen.ir.dtypes import BYTES
from gemmgen.ir.edit import changed_by, edit_main, edit_statements, pipeline_of, promotion_of
from gemmgen.ir.nodes import Kernel, Pipeline, Program
from gemmgen.ir.tensor_map import ALIGNMENT
from gemmgen.passes.base import Stated, tile_line
from gemmgen.schedule.model import Gemm
from gemmgen.schedule.roles import roles
from gemmgen.schedule.spec import ArgumentSpec, DirectiveSpec, Elsewhere


@record
class Residue:
    SPEC: ClassVar = DirectiveSpec(
        "residue",
        example="residue k=first",
        arguments=(
            ArgumentSpec(
                "<k>", "word", choices=get_args(nodes.Residue), required=True, identity="last"
            ),
        ),
        elsewhere=Elsewhere(
            "CUTLASS residue tile", "residue_first peel peel_loop loop_partition remainder"
        ),
    )
    AFTER: ClassVar[tuple[str, ...]] = (
        *("tile", "cache_shared", "vectorize", "double_buffer", "async_copy"),
    )

    letter: str
    stated: Stated = field(compare=False)

    @staticmethod
    def read(stated: Stated, gemm: Gemm) -> Residue:
        _, _, k = roles(gemm)
        return Residue(k, stated)

    def apply(self, program: Program) -> Program:
        kernel, problem, k = program.main, program.problem, self.letter
        pipeline = pipeline_of(kernel)
        if pipeline is None:
            raise self._refusal(
                "the contraction is not cut into tiles",
                hint=f"{tile_line(kernel, k, 8)} cuts it",
            )
        if program.intent.k_lanes:
            raise self._refusal(
                "the lanes of a warp split it, and copy no tiles",
                hint=f"residue {k}=last",
            )
        if problem.scales and promotion_of(kernel):
            raise self._refusal(
                "tiles would begin within blocks of scales",
                f"{problem.scales[0].tensor.text} has blocks from {k} = 0 on",
                hint=f"residue {k}=last",
            )
        self._check_tiles(kernel, pipeline, (problem.a.name, problem.b.name))
        self._check_wide(program, pipeline)
        if divides(program, problem.extent(k), pipeline.step):
            return program  # no tile is partial

        def peel(steps: Pipeline) -> Pipeline:
            return changed_by(self.stated.origin, steps, residue="first")

        return edit_main(program, lambda main: edit_statements(main, Pipeline, peel))

    def _refusal(self, why: str, *notes: str, hint: str) -> Refusal:
        text = f"residue {self.letter}=first: {why}"
        return Refusal(text, at=self.stated.span, notes=notes, hint=hint)

    def _check_tiles(self, kernel: Kernel, pipeline: Pipeline, inputs: tuple[str, str]) -> None:
        """Checks that both operands have tiles, all of which but the first are loaded in the
        loop."""
        copied = [c.src for c in pipeline.produce]
        missing = [name for name in inputs if name not in copied]
        if missing:
            raise self._refusal(
                f"{missing[0]} is read from global memory element by element, each with a guard",
                hint=f"cache_shared {missing[0]} and double_buffer {missing[0]}",
            )
        late = [c.src for c in pipeline.produce if kernel.buffer(c.dst).stages == 1]
        if late:
            raise self._refusal(
                f"the tiles of {late[0]} have one stage, so each is loaded in its own step, the "
                "first like the others",
                hint=f"double_buffer {' '.join(inputs)}",
            )

    def _check_wide(self, program: Program, pipeline: Pipeline) -> None:
        """Checks wide accesses, and boxes, along k: they begin at K modulo their width."""
        name = program.problem.extent(self.letter)
        for copy in pipeline.produce:
            source = program.main.buffer(copy.src)
            if source.letters[-1] != self.letter:
                continue
            if copy.mode == "tma":
                self._check_box(program, pipeline, source)
            elif not divides(program, name, copy.width):
                raise self._refusal(
                    f"{copy.src} is read {copy.width} at a time along {self.letter}",
                    f"the first tile begins at -({pipeline.step} - {name} % {pipeline.step}), "
                    f"which {copy.width} divides only if it divides {name}",
                    hint=f"assume {name} % {copy.width} == 0, or vectorize {copy.src}.shared alone",
                )

    def _check_box(self, program: Program, pipeline: Pipeline, source: Buffer) -> None:
        """Checks that boxes of an operand begin at multiples of 16 bytes of its rows."""
        name, tensor, size = program.problem.extent(self.letter), source.name, BYTES[source.dtype]
        unit = ALIGNMENT // size
        if not divides(program, name, unit):
            raise self._refusal(
                f"boxes of {tensor} begin at multiples of {ALIGNMENT} bytes along {self.letter}",
                f"{ALIGNMENT} bytes are {unit} elements of {size}, and the first box begins at "
                f"-({pipeline.step} - {name} % {pipeline.step}), which {unit} divides only if it "
                f"divides {name}",
                hint=f"assume {name} % {unit} == 0, or residue {self.letter}=last",
            )
