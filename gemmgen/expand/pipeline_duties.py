"""Tiles copied by a producer warpgroup while consumers multiply them (CUTLASS: warp
specialization).

Each stage has two barriers.  The producer waits until the stage is empty, and asks the copy engine
for the tiles that go there; the phase of ``full`` ends when their bytes have landed.  A consumer
waits for that, and once its warp has read the stage for the last time one of its lanes arrives at
``empty``.  So neither waits at a barrier of the block, and the producer is ahead by as many tiles
as there are stages.

The producer asks for no tile that is not consumed: none is under way when the last consumer ends.
"""

from __future__ import annotations

from gemmgen.base.record import record
from gemmgen.expand.inner_loop import plus, steps_in_tile
from gemmgen.expand.k_range import first_tile
from gemmgen.expand.pipeline_tma import ARRIVALS, TmaPipeline, waits
from gemmgen.expand.ring import Ring
from gemmgen.ir import names
from gemmgen.ir.barriers import BarrierArray, FenceBarriers, InitBarrier, WaitBarrier
from gemmgen.ir.buffers import Origins
from gemmgen.ir.control import Assign, Barrier, Block, Define, For
from gemmgen.ir.expanded import OneThread, Release, Tiles, Timed
from gemmgen.ir.expr import Binary, Expr, Int
from gemmgen.ir.target import WARP

EMPTY_AT_FIRST = Int(1)
"""The parity of the phase before the first one, which counts as ended: no stage is read yet."""


@record
class DutyPipeline(TmaPipeline):
    """The expansion of one pipeline whose tiles a producer copies; ``expand`` gives what the
    consumers do."""

    def barriers(self) -> Timed:
        """Two for each stage, initialized by one thread."""
        ring = self._ring()
        count, stage = ring.number(), ring.stage
        each = (
            InitBarrier(ring.full_at(stage), ARRIVALS),
            InitBarrier(ring.empty_at(stage), Binary("/", names.CONSUMERS, Int(WARP))),
        )
        body = (
            BarrierArray(ring.full, count, ring.stages),
            BarrierArray(ring.empty, count, ring.stages),
            OneThread((For(stage.name, Int(0), count, Int(1), each), FenceBarriers())),
            Barrier(),
        )
        note = (
            "barriers of each stage: full, a tile has landed there; empty, all warps have read it"
        )
        return Block(note, self._origins(), body)

    def before_tiles(self) -> tuple[Timed, ...]:
        return self._begun(self._ring()) if self._goes_on else ()

    def produced(self) -> Timed:
        """What the producer does: one of its threads asks for the tiles, one after another."""
        ring = self._ring()
        stage, tile = ring.stage, names.tile_origin(self.letter)
        step = (
            WaitBarrier(ring.empty_at(stage), ring.phase),
            *self._issues(ring, tile, stage),
            ring.turn_phase(stage),
            Assign(stage.name, _next(ring)),
        )
        k_range = self.k_range
        loop = For(tile.name, k_range.start, k_range.stop, names.block(self.letter), step)
        begun = (
            Define(stage.name, Int(0), mutable=True),
            Define(ring.phase.name, EMPTY_AT_FIRST, mutable=True),
        )
        first = first_tile(self.program, self.kernel, self.letter)
        if self._goes_on:
            walk = Tiles((*first, loop), computes=False, before=begun)
            return OneThread((walk,), thread=names.CONSUMERS)
        asks = OneThread((*begun, loop), thread=names.CONSUMERS)
        return Tiles((*first, asks), computes=False)

    def _reads_to_the_end(self) -> bool:
        """Nobody overwrites a stage that is not released."""
        return False

    def _prologue(self) -> tuple[Timed, ...]:
        ring = self._ring()
        begun = () if self._goes_on else self._begun(ring)
        return (*begun, *self._read_first(ring))

    def _body(self) -> tuple[Timed, ...]:
        ring = self._ring()
        steps = steps_in_tile(self.kernel, self.loop, lambda _: ring.stage)
        return (
            *self._landed(ring, ring.stage),
            self._multiply(steps),
            self._released(ring),
            *self._following(ring),
            *ring.advance_late(False),
        )

    def _body_reading_ahead(self) -> tuple[Timed, ...]:
        ring = self._ring()
        note = "release the stage, wait for the next tile if there is one, then read ahead into it"
        following = plus(names.tile_origin(self.letter), names.block(self.letter))
        multiply = self._multiply_reading_ahead(
            ring,
            note,
            self._landed(ring, ring.following_stage),
            self._exists(following),
            (self._released(ring),),
        )
        return (*self._following(ring), multiply, *ring.advance_late(True))

    def _landed(self, ring: Ring, stage: Expr) -> tuple[Timed, ...]:
        """Waits for the tile in ``stage``."""
        return waits(ring, stage)

    def _released(self, ring: Ring) -> Timed:
        return Release(ring.empty_at(ring.stage))

    def _following(self, ring: Ring) -> tuple[Define, ...]:
        """The stage that is read in the next step, where a name for it is used."""
        if ring.stages == 2:
            unused = ring.unrolled and not self._crosses()
            return () if unused else (Define(ring.next_stage.name, ring.before()),)
        if self._crosses() and ring.unrolled:
            return (Define(ring.next_stage.name, ring.after()),)
        return ()

    def _origins(self) -> Origins:
        return (*self._copied_by(), *self.kernel.producers.origins)


def _next(ring: Ring) -> Expr:
    """The stage after the present one."""
    return ring.before() if ring.stages == 2 else ring.after()
