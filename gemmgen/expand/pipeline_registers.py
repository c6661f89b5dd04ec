"""Tiles copied through registers: loaded, kept in registers, stored to shared memory.

With one stage a tile is filled, a barrier passed, used, and a second barrier passed before it is
filled again.  With N stages the tile N - 1 steps ahead is loaded before the arithmetic and stored
after it, to the stage that the previous step used; one barrier a step then suffices.  If both
operands' fragments are prefetched as well, the last step of a tile publishes the next tile and
reads its first fragments, so that no tile begins with a wait.
"""

from __future__ import annotations

from gemmgen.base.record import record
from gemmgen.expand.inner_loop import steps_between, steps_in_tile
from gemmgen.expand.k_range import edge_of_first, edge_of_others
from gemmgen.expand.pipeline_staged import StagedPipeline
from gemmgen.expand.ring import Ring
from gemmgen.ir import names
from gemmgen.ir.control import Block, Define, For
from gemmgen.ir.expanded import Load, Stage, Store, Timed, Transfer
from gemmgen.ir.expr import Expr, Int, Var
from gemmgen.ir.instruction import instruction
from gemmgen.ir.nodes import Copy
from gemmgen.ir.occupancy import registers_are_scarce


@record
class RegisterPipeline(StagedPipeline):
    """The expansion of one pipeline whose copies go through registers."""

    def _present(self) -> tuple[Copy, ...]:
        """Copies with one stage: filled in the step that uses them."""
        ahead_of_time = [c for ring in self.rings for c in ring.copies]
        return tuple(c for c in self.pipeline.produce if c not in ahead_of_time)

    def _stage_of(self, tile: str) -> Stage:
        for ring in self.rings:
            if any(c.dst == tile for c in ring.copies):
                return ring.stage
        return None

    def _reads_to_the_end(self) -> bool:
        return self._crosses()  # else a step ends with a barrier

    def _prologue(self) -> tuple[Timed, ...]:
        body: list[Timed] = [self._fill_first(ring) for ring in self.rings]
        body.extend(start for ring in self.rings for start in ring.begin())
        if self.rings and not self._present():
            body.append(instruction("sync_block"))
        if self._crosses():
            body.append(self._first_fragments())
        return tuple(body)

    def _fill_first(self, ring: Ring) -> Timed:
        """Fill all stages but one before the loop."""
        origins = self._cited(ring.copies, "cache_shared")
        edge = edge_of_first(self.kernel)

        def transfer(origin: Expr, stage: Expr) -> tuple[Timed, ...]:
            staged = self._staged_at_first()
            return tuple(Transfer(c, origin, stage, edge, staged) for c in ring.copies)

        if ring.stages == 2:
            start = self.k_range.start
            body = self._if_in_range(start, transfer(start, Int(0)))
            return Block("load the first tile", origins, body)
        number = Var(f"{ring.prefix}ahead")
        if self._crosses():
            body = self._fill_in_any_case(ring, number, lambda at: transfer(at, number))
        else:
            origin = self._first_origin(number)
            body = self._if_in_range(origin, transfer(origin, number))
        last = ring.count - 1
        loop = For(number.name, Int(0), last, Int(1), body)
        return Block("load the first tiles", origins, (loop,))

    def _staged_at_first(self) -> bool:
        """Whether the first tiles are staged in registers, too: compilers then spill less (decision
        26); with enough registers, it takes more of them and gains nothing."""
        return not self._crosses() and registers_are_scarce(self.kernel)

    def _body(self) -> tuple[Timed, ...]:
        if not self.pipeline.produce:
            return steps_between(self.program, self.kernel, self.loop)
        present = self._present()
        body: list[Timed] = []
        if present:
            origin = names.tile_origin(self.letter)
            transfers = tuple(Transfer(c, origin) for c in present)
            origins = self._cited(present, "cache_shared")
            body.append(Block("load this step's tiles", origins, transfers))
        for ring in self.rings:
            body.extend(self._load_ahead(ring))
        if present:
            body.append(instruction("sync_block"))
        steps = steps_in_tile(self.kernel, self.loop, self._stage_of)
        body.append(self._multiply(steps))
        for ring in self.rings:
            origins = self._cited(ring.copies, "double_buffer")
            note = "store the prefetched tile to shared memory"
            body.append(Block(note, origins, _stores(ring)))
        body.append(instruction("sync_block"))
        body.extend(then for ring in self.rings for then in ring.advance())
        return tuple(body)

    def _body_reading_ahead(self) -> tuple[Timed, ...]:
        (ring,) = self.rings
        note = "store the prefetched tile to shared memory, then read ahead into it"
        publish = (*_stores(ring), instruction("sync_block"))
        multiply = self._multiply_reading_ahead(ring, note, publish)
        return (*self._load_ahead(ring), multiply, *ring.advance_late(crosses=True))

    def _load_ahead(self, ring: Ring) -> tuple[Timed, ...]:
        origin = ring.next(self.letter)
        loads = tuple(Load(c, origin, edge_of_others(self.kernel)) for c in ring.copies)
        origins = self._cited(ring.copies, "double_buffer")
        return (
            Define(origin.name, self._ahead(ring)),
            *ring.neighbours(self._crosses()),
            Block("load the next tile early", origins, loads),
        )


def _stores(ring: Ring) -> tuple[Store, ...]:
    return tuple(Store(c, ring.write_stage) for c in ring.copies)
