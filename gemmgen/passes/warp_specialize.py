"""warp_specialize: a warpgroup that copies the tiles while the others multiply.

The last 128 threads of the block, the producer, wait until a stage is empty and ask TMA
for the tiles that go there. The other threads, the consumers, wait until a stage is full; no thread
waits for the whole block in between. The copies end at barriers in shared memory, so it needs
``async_copy via=tma``. How many consumers there are follows from the tile; ``consumers`` (in
warpgroups of 128 threads) is only checked. On sm_90a the producer gives up registers that the
consumers take, if these are whole warpgroups. ``producers=0`` equals the directive's absence.
With ``split_k`` the consumers reduce the parts; with ``cluster`` producers multicast.

With ``order=pingpong`` (as in CUTLASS) two consumer warpgroups of a persistent block alternate:
each computes a whole tile, and while one runs its epilogue the other runs its main loop.
``order=cooperative``, where all consumers share each tile, is the default.

    work [m=32, n=32]
==> warp_specialize producers=1
    work [m=32, n=32]
    producers warpgroups=1   # warp_specialize producers=1
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import ClassVar, Literal, cast, get_args

from gemmgen.base.errors import Refusal
from gemmgen.base.record import record
from gemmgen.base.source import remainder
from gemmgen.ir.boxes import spaced
from gemmgen.ir.edit import changed_by, copy_outward, edit_buffer, edit_main, pipeline_of
from gemmgen.ir.nodes import Kernel, Producers, Program
from gemmgen.ir.target import SINCE, WARP, WARPGROUP, has
from gemmgen.passes.base import Stated
from gemmgen.passes.pingpong import CONSUMERS, check_pingpong
from gemmgen.schedule.model import Gemm
from gemmgen.schedule.spec import ArgumentSpec, DirectiveSpec, Elsewhere

ConsumerOrder = Literal["cooperative", "pingpong"]
"""How consumer warpgroups share tiles: all compute each tile, or each computes every other one."""


MOST_CONSUMERS = 7
"""Warpgroups beside a producer in a block of 1024 threads."""


@record
class WarpSpecialize:
    SPEC: ClassVar = DirectiveSpec(
        "warp_specialize",
        example="warp_specialize producers=1",
        arguments=(
            ArgumentSpec(
                "producers", minimum=0, maximum=1, required=True, identity=0, fuzz=((1,),)
            ),
            ArgumentSpec("consumers", maximum=MOST_CONSUMERS, fuzz=((1,), (2,))),
            ArgumentSpec(
                "order",
                "word",
                choices=get_args(ConsumerOrder),
                default="cooperative",
                identity="cooperative",
                formerly=(("in_turn", "pingpong"), ("together", "cooperative")),
                elsewhere="schedule",
            ),
        ),
        elsewhere=Elsewhere(
            "CUTLASS KernelTmaWarpSpecialized, Triton warp_specialize, TileLang T.ws",
            "ws warp_specialized warp_specialization kerneltmawarpspecialized kernel_schedule "
            "num_consumer_groups producer_warps ping_pong",
        ),
    )
    AFTER: ClassVar[tuple[str, ...]] = (
        *("tile", "cache_shared", "warp_tile", "register_block", "tensor_core"),
        *("vectorize", "double_buffer", "async_copy", "split_k", "persistent"),
    )

    producers: int
    consumers: int | None
    order: ConsumerOrder
    stated: Stated = field(compare=False)

    @staticmethod
    def read(stated: Stated, gemm: Gemm) -> WarpSpecialize:
        order = cast(ConsumerOrder, stated.word("order") or "cooperative")
        producers, consumers = stated.integer("producers") or 0, stated.integer("consumers")
        return WarpSpecialize(producers, consumers, order, stated)

    def apply(self, program: Program) -> Program:
        if self.producers == 0:
            return program
        self._check_copies(program)
        origin, pingpong = self.stated.origin, 1
        if self.order == "pingpong":
            check_pingpong(program, self.stated, self.consumers)
            pingpong = CONSUMERS
        else:
            self._check_consumers(program.main)
        producers = Producers(self.producers, (origin,), pingpong)

        def specialize(kernel: Kernel) -> Kernel:
            outward = copy_outward(kernel)
            if outward is not None and pingpong > 1:  # each consumer has its own slices
                slice_ = kernel.buffer(outward.src)
                several = changed_by(origin, slice_, stages=pingpong * slice_.stages)
                own = spaced(several) if outward.mode == "tma" else several
                kernel = edit_buffer(kernel, outward.src, lambda _: own)
            return replace(kernel, producers=producers)

        return edit_main(program, specialize)

    def _check_copies(self, program: Program) -> None:
        """The copies must end at barriers, which threads wait for that did not issue them."""
        pipeline = pipeline_of(program.main)
        modes = {copy.mode for copy in pipeline.produce} if pipeline else set[str]()
        if modes == {"tma"}:
            return
        if not has(program.target, SINCE["tma"]):
            raise Refusal(
                f"warp_specialize needs TMA, which {program.target} does not have",
                at=self.stated.span,
                hint="target sm_90, or leave warp_specialize out",
            )
        operands = " ".join(tensor.name for tensor in (program.problem.a, program.problem.b))
        if pipeline and pipeline.produce:
            operands = " ".join(copy.src for copy in pipeline.produce)
        tiles = [program.main.buffer(c.dst) for c in pipeline.produce] if pipeline else []
        hint = f"async_copy {operands} via=tma"
        if not tiles:
            hint = f"add cache_shared {operands}"
        elif all(tile.stages == 1 for tile in tiles):
            hint = f"add double_buffer {operands}"
        raise Refusal(
            "warp_specialize needs copies that complete an mbarrier, on which the consumers wait",
            at=self.stated.span,
            notes=("a thread waits for its own loads and its own cp.async only",),
            hint=hint,
        )

    def _check_consumers(self, kernel: Kernel) -> None:
        """``consumers``, and that they are whole warps, each of which arrives once."""
        threads = kernel.spread.threads
        if threads % WARP:
            return  # the limits of a block refuse that
        if self.consumers is None or self.consumers * WARPGROUP == threads:
            return
        warps = " x ".join(f"{a.extent} / {a.extent // a.threads}" for a in kernel.spread.axes)
        count, rest = divmod(threads, WARPGROUP)
        found = remainder(threads, WARPGROUP) if rest else f"{count} warpgroups of {WARPGROUP}"
        raise Refusal(
            f"the tile does not have {self.consumers} warpgroups of consumers",
            at=self.stated.span_of("consumers"),
            notes=(f"{warps} = {threads} threads; {found}",),
            hint=(
                "leave consumers out"
                if rest or count > MOST_CONSUMERS
                else f"consumers={count}, or leave consumers out"
            ),
        )
