"""split_k: split K over several blocks, or over the lanes of a warp.

If C has few tiles and K is large, one block a tile leaves most of the GPU idle.  ``parts=N`` gives
each tile N blocks; part p sums the p-th range of whole steps.  Every block writes its partial sums
to a workspace and increments a counter; the last block to arrive adds the parts and computes the
epilogue, so that no block waits for another.  ``reduce=ordered`` (the default) adds them in the
order of their numbers, with the same bits in every run; with ``reduce=atomic`` the blocks add to
one tile of accumulators in the order of arrival: less memory, bits that may differ from run to run.
One block reads its tile's parts no faster than a multiprocessor can; ``groups=G`` reduces G groups
of parts first, in the last block of each, and then the groups. The launcher takes the workspace and
the counters; the Python functions allocate them.

With ``warp_specialize`` the consumers reduce, and the producer takes no part in it. Blocks of a
``cluster`` sum the same part, and share its tiles. ``persistent`` is refused: blocks leave early.

``within=warp`` is another form: a thread's micro-tile becomes a warp's.  Each lane reads its own k
elements of a step, contiguous over the lanes (``vectorize`` makes them wide), and shuffles add the
lanes' accumulators in a fixed order: for matrix-vector products, and few rows.

    work [m=16, n=16]
==> split_k parts=4
    work [m=16, n=16] parts=4   # split_k parts=4
"""

from __future__ import annotations

from dataclasses import field, replace
from math import prod
from typing import ClassVar, cast, get_args

from gemmgen.base.errors import Refusal
from gemmgen.base.record import record
from gemmgen.base.source import remainder
from gemmgen.ir.edit import changed_by, edit_main, pipeline_of
from gemmgen.ir.nodes import Kernel, Program, Reduce
from gemmgen.ir.target import MAX_THREADS, WARP
from gemmgen.passes.base import Stated, tile_line
from gemmgen.passes.split_k_lanes import SplitKLanes
from gemmgen.schedule.model import Gemm
from gemmgen.schedule.spec import ArgumentSpec, DirectiveSpec, Elsewhere

MOST = 65535
"""The most parts of a tile: more blocks than any GPU holds at once."""


@record
class SplitK:
    SPEC: ClassVar = DirectiveSpec(
        "split_k",
        example="split_k parts=4",
        sizes=True,
        arguments=(
            ArgumentSpec("parts", maximum=MOST, default=0, identity=1, fuzz=((2,), (3, 4, 6, 7))),
            ArgumentSpec(
                "reduce", "word", choices=get_args(Reduce), default="ordered", identity="ordered"
            ),
            ArgumentSpec("groups", maximum=MOST, default=1, identity=1, fuzz=((2,), (3,))),
            ArgumentSpec("within", "word", choices=("warp",)),
        ),
        elsewhere=Elsewhere(
            "TVM rfactor, CUTLASS split_k_slices",
            "rfactor split_reduction split_k_slices splitk grouptop split_reduction_outward",
        ),
    )
    AFTER: ClassVar[tuple[str, ...]] = (
        *("tile", "cache_shared", "warp_tile", "register_block", "vectorize", "double_buffer"),
        "residue",
    )

    parts: int | None
    reduce: Reduce
    groups: int
    lanes: SplitKLanes | None
    stated: Stated = field(compare=False)

    @staticmethod
    def read(stated: Stated, gemm: Gemm) -> SplitK:
        reduce = cast(Reduce, stated.word("reduce") or "ordered")
        lanes = SplitKLanes(stated.origin, stated.span) if stated.word("within") else None
        return SplitK(stated.integer("parts"), reduce, stated.integer("groups") or 1, lanes, stated)

    def apply(self, program: Program) -> Program:
        self._check_forms()
        if self.parts == 1 and self.lanes is None:
            return program
        if pipeline_of(program.main) is None:
            raise self._unstepped(program)
        if self.lanes is not None:
            return self.lanes.apply(program)
        self._check_groups()
        return edit_main(program, self._split)

    def _check_forms(self) -> None:
        """Checks that one of the two forms is given."""
        if self.parts is None and self.lanes is None and self.groups > 1:
            raise Refusal(
                f"split_k groups={self.groups} groups the parts of a sum, and there is no parts=",
                at=self.stated.span,
                hint=f"split_k parts={min(2 * self.groups, MOST)} groups={self.groups}",
            )
        if self.parts is None and self.lanes is None:
            raise Refusal(
                "split_k needs parts, or within",
                at=self.stated.span,
                hint="split_k parts=4, or split_k within=warp",
            )
        others = (self.parts or 1) > 1 or self.groups > 1 or self.reduce == "atomic"
        if self.lanes is not None and others:
            raise Refusal(
                "split_k within=warp adds lanes' accumulators with shuffles, and takes no "
                "arguments of a split over blocks",
                at=self.stated.span,
                hint="split_k within=warp, or leave within out",
            )

    def _split(self, kernel: Kernel) -> Kernel:
        pipeline = pipeline_of(kernel)
        assert pipeline is not None
        if pipeline.residue == "first":
            k = pipeline.letter
            raise Refusal(
                f"split_k parts={self.parts} splits whole steps along {k}, from {k} = 0 on",
                at=self.stated.span,
                notes=(f"residue {k}=first has them begin before it",),
                hint=f"residue {k}=last",
            )
        assert self.parts is not None
        split = {"parts": self.parts, "reduce": self.reduce, "groups": self.groups}
        return replace(kernel, work=changed_by(self.stated.origin, kernel.work, **split))

    def _check_groups(self) -> None:
        if self.groups > 1 and self.reduce == "atomic":
            raise Refusal(
                "groups add their parts in order, and reduce=atomic in order of arrival",
                at=self.stated.span_of("groups"),
                hint="leave groups or reduce out",
            )
        assert self.parts is not None
        if self.parts % self.groups:
            fitting = " or ".join(str(d) for d in _divisors_near(self.parts))
            raise Refusal(
                f"groups={self.groups} does not divide the {self.parts} parts",
                at=self.stated.span_of("groups"),
                notes=(remainder(self.parts, self.groups),),
                hint=f"groups={fitting}",
            )

    def _unstepped(self, program: Program) -> Refusal:
        problem, kernel = program.problem, program.main
        hint = tile_line(kernel, problem.k, 8 if self.lanes is None else WARP)
        if self.lanes is not None and prod(dict(kernel.work.tile).values()) > MAX_THREADS // WARP:
            hint = f"tile {problem.m}=8 {problem.n}=1 {problem.k}={WARP}"
        return Refusal(
            f"split_k splits steps along {problem.k}, and {problem.k} has none",
            at=self.stated.span,
            hint=hint,
        )


def _divisors_near(parts: int) -> list[int]:
    """The divisors on both sides of the square root, which minimize sequential reads."""
    divisors = [d for d in range(1, parts + 1) if parts % d == 0]
    below = max(d for d in divisors if d * d <= parts)
    return sorted({below, parts // below})
