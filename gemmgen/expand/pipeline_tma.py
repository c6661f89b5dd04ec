"""Tiles copied by the copy engine (TMA): up to N - 1 of them under way while one is used.

One thread asks for a tile; when its bytes have landed, a phase of the stage's barrier ends.  A step
waits for that phase, passes the block's barrier (the stage before is no longer read) and asks for
the tile that goes there.  Tiles past the end are never asked for, so each that is under way is
waited for by the loop.
"""

from __future__ import annotations

from gemmgen.base.record import record
from gemmgen.expand.inner_loop import plus, steps_in_tile
from gemmgen.expand.pipeline_staged import StagedPipeline
from gemmgen.expand.ring import Ring
from gemmgen.ir import names
from gemmgen.ir.barriers import BarrierArray, ExpectBytes, FenceBarriers, InitBarrier, WaitBarrier
from gemmgen.ir.control import Barrier, Block, Define, For, If
from gemmgen.ir.expanded import CopyBox, OneThread, Timed
from gemmgen.ir.expr import Binary, Expr, Int, Var
from gemmgen.ir.simplify import less

ARRIVALS = Int(1)
"""The thread that asks for a tile arrives at the stage's barrier, and no other."""


@record
class TmaPipeline(StagedPipeline):
    """The expansion of one pipeline whose tiles the copy engine copies."""

    def _prologue(self) -> tuple[Timed, ...]:
        ring = self._ring()
        begun = (*ring.begin(), Define(ring.phase.name, Int(0), mutable=True))
        body = (self._barriers(ring), self._issue_first(ring), *begun)
        if not self._crosses():
            return body
        landed = WaitBarrier(ring.full_at(Int(0)), Int(0))
        return (*body, self._first_fragments((landed,)))

    def _body(self) -> tuple[Timed, ...]:
        ring = self._ring()
        steps = steps_in_tile(self.kernel, self.loop, lambda _: ring.stage)
        landed, issued = self._landed(ring, ring.stage), self._issue_ahead(ring)
        return (*landed, *issued, self._multiply(steps), *ring.advance_late(False))

    def _body_reading_ahead(self) -> tuple[Timed, ...]:
        ring = self._ring()
        note = "wait for the next tile, if there is one, then read ahead into it"
        following = plus(names.tile_origin(self.letter), names.block(self.letter))
        multiply = self._multiply_reading_ahead(
            ring, note, self._landed(ring, ring.following_stage), self._exists(following)
        )
        return (*self._issue_ahead(ring), multiply, *ring.advance_late(True))

    def _barriers(self, ring: Ring) -> Timed:
        """One for each stage, initialized by one thread."""
        count, stage = ring.number(), ring.stage
        init = InitBarrier(ring.full_at(stage), ARRIVALS)
        each = For(stage.name, Int(0), count, Int(1), (init,))
        body = (
            BarrierArray(ring.full, count, ring.stages),
            OneThread((each, FenceBarriers())),
            Barrier(),
        )
        note = "a barrier for each stage, whose phases end when a tile has landed there"
        return Block(note, self._copied_by(), body)

    def _landed(self, ring: Ring, stage: Expr) -> tuple[Timed, ...]:
        """Waits for the tile in ``stage``, and for all threads' last reads of the one before."""
        return (WaitBarrier(ring.full_at(stage), ring.phase), ring.turn_phase(stage), Barrier())

    def _exists(self, origin: Expr) -> Expr:
        """Whether the block sums a tile that begins at ``origin``."""
        return less(origin, self.k_range.stop)

    def _if_in_range(self, origin: Expr, body: tuple[Timed, ...]) -> tuple[Timed, ...]:
        return (If(self._exists(origin), body),)

    def _issue_first(self, ring: Ring) -> Timed:
        if ring.stages == 2:
            start = self.k_range.start
            first = OneThread(self._issues(ring, start, Int(0)), self._exists(start))
            return Block("copy the first tile", self._copied_by(), (first,))
        number, origin = Var("ahead"), ring.next(self.letter)
        body = (
            Define(origin.name, self._first_origin(number)),
            If(self._exists(origin), self._issues(ring, origin, number)),
        )
        last = Binary("-", ring.count, Int(1))
        loop = For(number.name, Int(0), last, Int(1), body)
        return Block("copy the first tiles", self._copied_by(), (OneThread((loop,)),))

    def _issue_ahead(self, ring: Ring) -> tuple[Timed, ...]:
        origin = ring.next(self.letter)
        ahead = plus(names.tile_origin(self.letter), ring.distance(self.letter))
        issues = OneThread(self._issues(ring, origin, ring.write_stage), self._exists(origin))
        return (
            Define(origin.name, ahead),
            *ring.neighbours(self._crosses()),
            Block("copy a tile ahead", self._copied_by(), (issues,)),
        )

    def _issues(self, ring: Ring, origin: Expr, stage: Expr) -> tuple[Timed, ...]:
        """Asks for the tiles at ``origin``: the bytes are announced first."""
        full = ring.full_at(stage)
        boxes = (CopyBox(copy, origin, full, stage) for copy in ring.copies)
        return (ExpectBytes(full, names.STAGE_BYTES), *boxes)
