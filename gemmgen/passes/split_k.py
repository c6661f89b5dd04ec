"""split_k: several blocks share a tile of C, each sums a part of k.

Where C has few tiles and k is long, one block a tile leaves most of the GPU idle.  ``parts=N``
gives each tile N blocks; part p takes the p-th range of whole steps.  Every block leaves its sums
in a workspace and counts itself in; the last one to come adds the parts and computes the epilogue,
so that no block waits for another.  ``reduce=ordered`` (the default) adds them in the order of
their numbers, with the same bits in every run; ``reduce=atomic`` keeps one tile of sums, to which
the blocks add as they come: less memory, bits that may differ from run to run.  The launcher takes
the workspace and the counters; from Python they are kept for you.

    work m=16 n=16
==> split_k parts=4
    work m=16 n=16 parts=4   # split_k parts=4
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

from gemmgen.errors import Refusal
from gemmgen.ir.edit import edit_main, pipeline_of
from gemmgen.ir.nodes import Kernel, Program, Reduce
from gemmgen.passes.base import Said
from gemmgen.schedule.model import Schedule
from gemmgen.schedule.spec import ArgumentSpec, DirectiveSpec

MOST = 65535
"""Parts of a tile: more than any GPU has blocks at once."""
REDUCE: tuple[Reduce, ...] = ("ordered", "atomic")


@dataclass(frozen=True)
class SplitK:
    SPEC: ClassVar = DirectiveSpec(
        "split_k",
        arguments=(
            ArgumentSpec("parts", maximum=MOST, required=True, identity=1),
            ArgumentSpec("reduce", "word", choices=REDUCE, default="ordered", identity="ordered"),
        ),
    )
    AFTER: ClassVar[tuple[str, ...]] = ("tile",)

    parts: int
    reduce: Reduce
    said: Said = field(compare=False)

    @staticmethod
    def read(said: Said, schedule: Schedule) -> SplitK:
        word = said.word("reduce")
        reduce: Reduce = "atomic" if word == "atomic" else "ordered"
        return SplitK(said.integer("parts") or 1, reduce, said)

    def apply(self, program: Program) -> Program:
        if self.parts == 1:
            return program
        if pipeline_of(program.main) is None:
            raise self._unstepped(program)
        return edit_main(program, self._split)

    def _split(self, kernel: Kernel) -> Kernel:
        work = kernel.work
        origins = (*work.origins, self.said.origin)
        split = replace(work, parts=self.parts, reduce=self.reduce, origins=origins)
        return replace(kernel, work=split)

    def _unstepped(self, program: Program) -> Refusal:
        problem, work = program.problem, program.main.work
        sizes = " ".join(f"{letter}={size}" for letter, size in work.tile)
        return Refusal(
            f"split_k shares out steps along {problem.k}, and {problem.k} has none",
            at=self.said.span,
            hint=f"tile {sizes} {problem.k}=8",
        )
