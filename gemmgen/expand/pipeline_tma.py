"""Tiles copied by TMA: up to N - 1 of them under way while one is used.

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
from gemmgen.ir.barriers import BarrierArray
from gemmgen.ir.control import Assign, Block, Define, For, If
from gemmgen.ir.expanded import CopyBox, OneThread, Timed
from gemmgen.ir.expr import Expr, Int, Unary, Var
from gemmgen.ir.instruction import instruction
from gemmgen.ir.simplify import less

LANDED = Var("landed")
"""Whether the next tile has landed, as was asked at the beginning of a step."""
ARRIVALS = Int(1)
"""The thread that asks for a tile arrives at the stage's barrier, and no other."""


@record
class TmaPipeline(StagedPipeline):
    """The expansion of one pipeline whose tiles TMA copies."""

    def before_tiles(self) -> tuple[Timed, ...]:
        ring = self._ring()
        return (self._barriers(ring), *self._begun(ring)) if self._goes_on else ()

    def _reads_to_the_end(self) -> bool:
        """The first copies of the next tile go to all stages but the one that was read last, and
        its first step has a barrier before it copies to that: unless fragments are read ahead."""
        return self._crosses()

    def _prologue(self) -> tuple[Timed, ...]:
        ring = self._ring()
        first = self._issue_first(ring)
        body = (first,) if self._goes_on else (self._barriers(ring), first, *self._begun(ring))
        return (*body, *self._read_first(ring))

    def _begun(self, ring: Ring) -> tuple[Timed, ...]:
        """The ring's variables: the first tile is in the first stage's first phase."""
        return (*ring.begin(), Define(ring.phase.name, Int(0), mutable=True))

    def _read_first(self, ring: Ring) -> tuple[Timed, ...]:
        """The first fragments, if the steps read ahead, once their tile has landed."""
        if not self._crosses():
            return ()
        if not self._goes_on:
            landed = instruction("try_wait", ring.full_at(Int(0)), Int(0))
            return (self._first_fragments((landed,)),)
        landed = (wait(ring, ring.stage), ring.turn_phase(ring.stage))
        return (self._first_fragments(landed, ring.stage),)

    def _body(self) -> tuple[Timed, ...]:
        ring = self._ring()
        steps = steps_in_tile(self.kernel, self.loop, lambda _: ring.stage)
        landed, issued = self._landed(ring, ring.stage), self._issue_ahead(ring)
        return (*landed, *issued, self._multiply(steps), ring.advance_with_phase())

    def _body_reading_ahead(self) -> tuple[Timed, ...]:
        ring = self._ring()
        note = "wait for the next tile, if there is one, then read ahead into it"
        following = plus(names.tile_origin(self.letter), names.block(self.letter))
        exists = self._exists(following)
        landed = self._landed_ahead(ring)
        multiply = self._multiply_reading_ahead(ring, note, landed, exists)
        issued = self._issue_ahead(ring)
        named = (self._named(ring),) if ring.advances_early else ()
        asked = self._asked_early(ring, exists, named)
        return (*issued, asked, multiply, *ring.advance_late(True))

    def _named(self, ring: Ring) -> Define:
        """The stage that is read in the next step."""
        return Define(ring.next_stage.name, ring.before() if ring.stages == 2 else ring.after())

    def _asked_early(self, ring: Ring, exists: Expr, named: tuple[Define, ...]) -> Timed:
        """Whether the next tile has landed, which the end of the step has to know: the answer takes
        some time, in which the tile is multiplied.  Its stage is ``named`` here, if nothing else
        has a name for it."""
        full = ring.full_at(ring.next_stage)
        test = instruction("test_wait", full, ring.phase, result=LANDED.name, predicate=exists)
        note = "test early whether the next tile has arrived"
        return Block(note, self._copied_by(), (*named, test))

    def _advanced(self, ring: Ring) -> tuple[Timed, ...]:
        return (Assign(ring.stage.name, ring.next_stage),)

    def _barriers(self, ring: Ring) -> Timed:
        """One for each stage, initialized by one thread."""
        count, stage = ring.number(), ring.stage
        init = instruction("init_barrier", ring.full_at(stage), ARRIVALS)
        each = For(stage.name, Int(0), count, Int(1), (init,))
        body = (
            BarrierArray(ring.full, count, ring.stages),
            OneThread((each, instruction("fence_barrier_init"))),
            instruction("sync_block"),
        )
        note = "one mbarrier per stage: a phase completes when a tile has arrived"
        return Block(note, self._copied_by(), body)

    def _landed(self, ring: Ring, stage: Expr, unless: Var | None = None) -> tuple[Timed, ...]:
        """Waits for the tile in ``stage``, and for all threads' last reads of the one before: a
        fence has TMA wait for these, too."""
        return (wait(ring, stage, unless), instruction("fence_async"), instruction("sync_block"))

    def _landed_ahead(self, ring: Ring) -> tuple[Timed, ...]:
        """The same for the tile of the next step, from which fragments are read ahead."""
        stage = ring.following_stage
        return (*self._landed(ring, stage, LANDED), ring.turn_phase(stage))

    def _release(self) -> tuple[Timed, ...]:
        barrier = super()._release()
        return (instruction("fence_async"), *barrier) if barrier else ()

    def _exists(self, origin: Expr) -> Expr:
        """Whether the block sums a tile that begins at ``origin``."""
        return less(origin, self.k_range.stop)

    def _if_in_range(self, origin: Expr, body: tuple[Timed, ...]) -> tuple[Timed, ...]:
        return (If(self._exists(origin), body),)

    def _issue_first(self, ring: Ring) -> Timed:
        if ring.stages == 2:
            start, stage = self.k_range.start, ring.stage if self._goes_on else Int(0)
            first = OneThread(self._issues(ring, start, stage), self._exists(start))
            return Block("copy the first tile", self._copied_by(), (first,))
        number, origin = Var("ahead"), ring.next(self.letter)
        target = ring.write_stage if self._goes_on else number
        there = plus(ring.stage, number) % ring.count
        body = (
            Define(origin.name, self._first_origin(number)),
            *((Define(ring.write_stage.name, there),) if self._goes_on else ()),
            If(self._exists(origin), self._issues(ring, origin, target)),
        )
        last = ring.count - 1
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
        return (instruction("expect_bytes", full, names.STAGE_BYTES), *boxes)


def wait(ring: Ring, stage: Expr, unless: Var | None = None) -> Timed:
    """Waits for the tile in ``stage``, unless it is known to have landed."""
    lacking = None if unless is None else Unary("!", unless)
    return instruction("try_wait", ring.full_at(stage), ring.phase, predicate=lacking)
