"""Tiles copied by a producer warpgroup while consumers multiply them (CUTLASS: warp
specialization).

Each stage has two barriers. The producer waits until the stage is empty, and asks TMA
for the tiles that go there; the phase of ``full`` ends when their bytes have landed. A consumer
waits for that, and once its warp has read the stage for the last time one of its lanes arrives at
``empty``, after a fence: without it TMA overtakes the warp's last reads. So neither
waits at a barrier of the block, and the producer is ahead by as many tiles as there are stages.

The producer asks for no tile that is not consumed: none is under way when the last consumer ends.

In a cluster each producer asks for a share of the tiles that its blocks share, for all of them.  So
a stage is empty once the consumers of all blocks have read it: they arrive at the barriers of all
blocks.  No thread may do so before these are initialized, or when their block has ended.
"""

from __future__ import annotations

from gemmgen.base.record import record
from gemmgen.expand import pingpong
from gemmgen.expand.inner_loop import plus, steps_in_tile
from gemmgen.expand.k_range import first_tile
from gemmgen.expand.pipeline_tma import ARRIVALS, TmaPipeline, wait
from gemmgen.expand.ring import Ring
from gemmgen.ir import clusters, names
from gemmgen.ir.barriers import BarrierArray
from gemmgen.ir.buffers import Origins
from gemmgen.ir.control import Block, Define, For
from gemmgen.ir.expanded import OneThread, Release, Tiles, Timed
from gemmgen.ir.expr import Expr, Int, Var
from gemmgen.ir.instruction import instruction
from gemmgen.ir.target import WARP

EMPTY_AT_FIRST = Int(1)
"""The parity of the phase before the first one, which counts as ended: no stage is read yet."""


@record
class RolePipeline(TmaPipeline):
    """The expansion of one pipeline whose tiles a producer copies; ``expand`` gives what the
    consumers do."""

    def barriers(self) -> Timed:
        """Two for each stage, initialized by one thread."""
        ring = self._ring()
        count, stage = ring.number(), ring.stage
        warps: Expr = pingpong.consumers_of_a_tile(self.kernel) / WARP
        barrier: Timed = instruction("sync_block")
        if self.kernel.work.cluster:
            warps, barrier = names.CLUSTER * warps, instruction("sync_cluster")
        each = (
            instruction("init_barrier", ring.full_at(stage), ARRIVALS),
            instruction("init_barrier", ring.empty_at(stage), warps),
        )
        body = (
            BarrierArray(ring.full, count, ring.stages),
            BarrierArray(ring.empty, count, ring.stages),
            *pingpong.declared(self.kernel),
            OneThread(
                (
                    For(stage.name, Int(0), count, Int(1), each),
                    *pingpong.initialized(self.kernel),
                    instruction("fence_barrier_init"),
                )
            ),
            barrier,
        )
        read = "all warps of the cluster have" if self.kernel.work.cluster else "all warps have"
        note = f"mbarriers of each stage: full, a tile arrived; empty, {read} read it"
        if self._is_pingpong:
            note += "; turn, per consumer: the other finished its main loop"
        return Block(note, self._origins(), body)

    def before_tiles(self) -> tuple[Timed, ...]:
        if self._is_pingpong:
            extent, step = Var(self.program.problem.extent(self.letter)), names.block(self.letter)
            return pingpong.begun(self.kernel, self._ring(), extent, step)
        return self._begun(self._ring()) if self._goes_on else ()

    @property
    def _is_pingpong(self) -> bool:
        return self.kernel.producers.pingpong > 1

    def produced(self) -> Timed:
        """What the producer does: one of its threads asks for the tiles, one after another."""
        ring = self._ring()
        stage, tile = ring.stage, names.tile_origin(self.letter)
        step = (
            instruction("try_wait", ring.empty_at(stage), ring.phase),
            *self._issues(ring, tile, stage),
            ring.next_of_both(),
        )
        k_range = self.k_range
        loop = For(tile.name, k_range.start, k_range.stop, names.block(self.letter), step)
        begun = (
            *self._shares(),
            Define(stage.name, Int(0), mutable=True),
            Define(ring.phase.name, EMPTY_AT_FIRST, mutable=True),
        )
        first = first_tile(self.program, self.kernel, self.letter)
        if self._goes_on:
            walk = Tiles((*first, loop), computes=False, before=begun)
            return OneThread((walk,), thread=names.CONSUMERS)
        asks = OneThread((*begun, loop), thread=names.CONSUMERS)
        return Tiles((*first, asks), computes=False)

    def _shares(self) -> tuple[Timed, ...]:
        """Where the block's share of each tile begins that its cluster shares."""
        work, found = self.kernel.work, list[Timed]()
        for copy in self._ring().copies:
            tile = self.kernel.buffer(copy.dst)
            letter, outer = clusters.shared_along(work, tile), tile.letters[0]
            if letter is not None:
                rows = names.block(outer) / names.cluster(letter)
                first = names.rank(letter) * rows
                found.append(Define(names.share_origin(copy.src, outer).name, first))
        note = "the first row of each shared tile that this block multicasts"
        return (Block(note, clusters.origins_of(work), tuple(found)),) if found else ()

    def _reads_to_the_end(self) -> bool:
        """No thread overwrites a stage that is not released."""
        return False

    def _prologue(self) -> tuple[Timed, ...]:
        ring = self._ring()
        begun = () if self._goes_on else self._begun(ring)
        waited = (pingpong.awaited(self.kernel),) if self._is_pingpong else ()
        return (*begun, *waited, *self._read_first(ring))

    def _drain(self) -> tuple[Timed, ...]:
        return (pingpong.release_other(self.kernel, self._ring()),) if self._is_pingpong else ()

    def _body(self) -> tuple[Timed, ...]:
        ring = self._ring()
        steps = steps_in_tile(self.kernel, self.loop, lambda _: ring.stage)
        return (
            *self._landed(ring, ring.stage),
            self._multiply(steps),
            *self._released(ring),
            ring.advance_with_phase(),
        )

    def _body_reading_ahead(self) -> tuple[Timed, ...]:
        ring = self._ring()
        note = "release the stage, wait for the next tile if there is one, then read ahead into it"
        following = plus(names.tile_origin(self.letter), names.block(self.letter))
        exists = self._exists(following)
        multiply = self._multiply_reading_ahead(
            ring,
            note,
            self._landed_ahead(ring),
            exists,
            self._released(ring),
        )
        asked = self._asked_early(ring, exists, (self._named(ring),))
        return (asked, multiply, *ring.advance_late(True))

    def _landed(self, ring: Ring, stage: Expr, unless: Var | None = None) -> tuple[Timed, ...]:
        """Waits for the tile in ``stage``."""
        return (wait(ring, stage, unless),)

    def _released(self, ring: Ring) -> tuple[Timed, ...]:
        return (instruction("fence_async"), Release(ring.empty_at(ring.stage)))

    def _origins(self) -> Origins:
        cluster = clusters.origins_of(self.kernel.work)
        return (*self._copied_by(), *self.kernel.producers.origins, *cluster)
