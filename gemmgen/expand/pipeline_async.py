"""Tiles copied by ``cp.async``: up to N - 1 of them outstanding while one is used.

Each tile is a group of copies, also an empty one past the end, so that the number of outstanding
groups determines which tile is complete.  A step waits for its group, passes a barrier (all
threads' copies are complete, and the previous stage is no longer read), and issues the copy into
the freed stage.
"""

from __future__ import annotations

from gemmgen.base.record import record
from gemmgen.expand.inner_loop import plus, steps_in_tile
from gemmgen.expand.k_range import edge_of_first, edge_of_others
from gemmgen.expand.pipeline_staged import StagedPipeline
from gemmgen.expand.ring import Ring
from gemmgen.ir import names
from gemmgen.ir.control import Assign, Block, Define, For
from gemmgen.ir.expanded import CopyTileAsync, Edge, Timed
from gemmgen.ir.expr import Expr, Int, Var
from gemmgen.ir.instruction import instruction
from gemmgen.ir.occupancy import registers_are_scarce


@record
class AsyncPipeline(StagedPipeline):
    """The expansion of one pipeline whose copies are asynchronous."""

    def _landed(self) -> tuple[Timed, ...]:
        """Waits until the oldest outstanding tile is complete, for all threads."""
        ring = self._ring()
        pending = Int(0) if ring.stages == 2 else ring.count - 2
        return (instruction("wait_group", pending), instruction("sync_block"))

    def _prologue(self) -> tuple[Timed, ...]:
        ring = self._ring()
        body: list[Timed] = [self._issue_first(ring), *ring.begin()]
        if self._keeps_origin():
            start, distance = self.k_range.start, ring.distance(self.letter)
            origin = distance if start == Int(0) else plus(start, distance)
            body.append(Define(ring.next(self.letter).name, origin, mutable=True))
        if self._crosses():
            body.extend(self._landed())
            body.append(self._first_fragments())
        return tuple(body)

    def _drain(self) -> tuple[Timed, ...]:
        # Copies past the last tile are waited for too: no thread may end with outstanding copies.
        wait = instruction("wait_group", Int(0))
        return (Block("drain the outstanding cp.async groups", (), (wait,)),)

    def _issue_first(self, ring: Ring) -> Timed:
        if ring.stages == 2:
            start = self.k_range.start
            first = _issues(ring, start, Int(0), edge_of_first(self.kernel))
            body = (*self._if_in_range(start, first), instruction("commit_group"))
            return Block("copy the first tile", self._copied_by(), body)
        number = Var("ahead")
        issues = self._fill_in_any_case(
            ring,
            number,
            lambda at: _issues(ring, at, number, edge_of_first(self.kernel)),
        )
        last = ring.count - 1
        loop = For(number.name, Int(0), last, Int(1), (*issues, instruction("commit_group")))
        return Block("copy the first tiles", self._copied_by(), (loop,))

    def _body(self) -> tuple[Timed, ...]:
        ring = self._ring()
        steps = steps_in_tile(self.kernel, self.loop, lambda _: ring.stage)
        multiply = self._multiply(steps)
        return (*self._landed(), *self._issue_ahead(ring), multiply, *self._advance(ring))

    def _body_reading_ahead(self) -> tuple[Timed, ...]:
        ring = self._ring()
        note = "wait for the next tile, then read ahead into it"
        multiply = self._multiply_reading_ahead(ring, note, self._landed())
        return (*self._issue_ahead(ring), multiply, *self._advance(ring))

    def _keeps_origin(self) -> bool:
        """Whether the origin of the tile to copy is kept from step to step, not computed from the
        step's own: if registers are scarce compilers then spill less (decision 26).  Not if it
        depends on more than the step, nor in a part of split-K."""
        single = self.pipeline.unroll == 1 and self.kernel.work.parts == 1
        return single and not self._has_whole_tiles() and registers_are_scarce(self.kernel)

    def _advance(self, ring: Ring) -> tuple[Timed, ...]:
        """Updates the ring's variables for the next step."""
        staged = ring.advance_late(self._crosses())
        if not self._keeps_origin():
            return staged
        origin = ring.next(self.letter)
        following = plus(origin, names.block(self.letter))
        return (*staged, Assign(origin.name, following))

    def _issue_ahead(self, ring: Ring) -> tuple[Timed, ...]:
        origin = ring.next(self.letter)
        issues = _issues(ring, origin, ring.write_stage, edge_of_others(self.kernel))
        computed = Define(origin.name, self._ahead(ring))
        return (
            *(() if self._keeps_origin() else (computed,)),
            *ring.neighbours(self._crosses()),
            Block("copy a tile ahead", self._copied_by(), (*issues, instruction("commit_group"))),
        )


def _issues(ring: Ring, origin: Expr, stage: Expr, edge: Edge) -> tuple[Timed, ...]:
    return tuple(CopyTileAsync(c, origin, stage, edge) for c in ring.copies)
