"""What pipelines through stages of shared memory have in common, however their tiles are copied: a
prologue fills the stages, and each step of the loop over tiles multiplies one and copies another.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace

from gemmgen.base.record import record
from gemmgen.expand import inner_loop
from gemmgen.expand.inner_loop import fetches, plus, step_of
from gemmgen.expand.k_range import KRange, first_tile, k_range_of
from gemmgen.expand.promotion_intervals import groups_of, scales_read
from gemmgen.expand.ring import Ring, over_tiles, rings
from gemmgen.ir import names
from gemmgen.ir.assumptions import divides
from gemmgen.ir.buffers import Origins
from gemmgen.ir.control import Block, Define, For, If
from gemmgen.ir.edit import contraction
from gemmgen.ir.expanded import Fetch, Stage, Timed
from gemmgen.ir.expr import Expr, Int, Select, Var
from gemmgen.ir.instruction import instruction
from gemmgen.ir.nodes import Copy, Init, Kernel, Loop, Pipeline, Program
from gemmgen.ir.simplify import less

ZERO = Int(0)
CopyTo = Callable[[Expr], tuple[Timed, ...]]
"""The copies of the tile that begins at an index."""


@record
class StagedPipeline(ABC):
    """The expansion of one pipeline, by a way of copying that is a subclass."""

    program: Program
    kernel: Kernel
    pipeline: Pipeline

    def expand(self) -> tuple[Timed, ...]:
        body = self._body_reading_ahead() if self._crosses() else self._body()
        return (
            *first_tile(self.program, self.kernel, self.letter),
            *self._prologue(),
            over_tiles(self.program, self.kernel, self.pipeline, body),
            *self._drain(),
            *self._release(),
        )

    @property
    def _goes_on(self) -> bool:
        """Whether the block has another tile: its ring goes on there, from the stage after the last
        one, in phases that are counted on."""
        return self.kernel.work.persistent

    def before_tiles(self) -> tuple[Timed, ...]:
        """Before a persistent block's first tile: what goes on from tile to tile."""
        return ()

    def zeroed(self, init: Init) -> tuple[Timed, ...]:
        """Before the first product of a tile of C."""
        return (init,)

    @abstractmethod
    def _prologue(self) -> tuple[Timed, ...]:
        """Before the loop: the first tiles."""

    @abstractmethod
    def _body(self) -> tuple[Timed, ...]:
        """A step that reads one tile's fragments."""

    @abstractmethod
    def _body_reading_ahead(self) -> tuple[Timed, ...]:
        """A step that ends with the next tile's first fragments."""

    def _drain(self) -> tuple[Timed, ...]:
        """After the loop: waits for what was started and not used."""
        return ()

    def _release(self) -> tuple[Timed, ...]:
        """Before the next tile's first copies: no thread reads this tile's stages any more."""
        if not self._goes_on or not self._reads_to_the_end():
            return ()
        note = "all warps are done with the stages of this tile"
        return (Block(note, (), (instruction("sync_block"),)),)

    def _reads_to_the_end(self) -> bool:
        """Whether the stages are read after the last barrier of the loop."""
        return True

    @property
    def letter(self) -> str:
        """The contracted letter."""
        return self.pipeline.letter

    @property
    def loop(self) -> Loop:
        """The steps within a tile."""
        (loop,) = self.pipeline.consume
        return loop

    @property
    def rings(self) -> tuple[Ring, ...]:
        return rings(self.kernel, self.pipeline)

    def _ring(self) -> Ring:
        """The one ring of a pipeline whose copies are asynchronous."""
        (ring,) = self.rings
        return ring

    @property
    def k_range(self) -> KRange:
        return k_range_of(self.program, self.kernel, self.letter)

    def _has_whole_tiles(self) -> bool:
        """Whether ``assume`` says that K is a multiple of the tile: no guard checks it then."""
        return divides(self.program, self.program.problem.extent(self.letter), self.pipeline.step)

    def _crosses(self) -> bool:
        """Whether the last step of a tile may read the first fragments of the next one.

        Only if every fragment of a tile has been read before that step's barrier: all fragments are
        prefetched, from tiles of one ring, and the number of steps is a multiple of the slots.
        """
        copies = fetches(self.loop)
        return (
            len(self.rings) == 1
            and len(self.rings[0].copies) == len(copies) == 2
            and all(inner_loop.reads_ahead(self.kernel, c) for c in copies)
            and self.pipeline.step // self.loop.step % 2 == 0
        )

    def _if_in_range(self, origin: Expr, body: tuple[Timed, ...]) -> tuple[Timed, ...]:
        """A tile past the end is read as zeros by its guards; without guards it is not read."""
        return (If(less(origin, self.k_range.stop), body),) if self._has_whole_tiles() else body

    def _fill_in_any_case(self, ring: Ring, number: Var, copies: CopyTo) -> tuple[Timed, ...]:
        """The first tiles, each of which is written even if K has fewer: the last step reads
        fragments of the tile after the last one, which may be any tile that was written."""
        k_range, origin = self.k_range, self._first_origin(number)
        if not self._has_whole_tiles():
            return copies(origin)
        inside = Select(less(origin, k_range.stop), origin, k_range.start)
        here = ring.next(self.letter)
        return self._if_in_range(k_range.start, (Define(here.name, inside), *copies(here)))

    def _first_origin(self, number: Expr) -> Expr:
        """First index of the ``number``-th tile."""
        start, distance = self.k_range.start, number * names.block(self.letter)
        return distance if start == Int(0) else plus(start, distance)

    def _ahead(self, ring: Ring) -> Expr:
        """First index of the tile to load now: past the last one its guards give zeros; without
        guards any tile is correct."""
        tile = names.tile_origin(self.letter)
        origin = plus(tile, ring.distance(self.letter))
        if self._has_whole_tiles():
            return Select(less(origin, self.k_range.stop), origin, tile)
        return origin

    def _first_fragments(self, landed: tuple[Timed, ...] = (), stage: Expr = ZERO) -> Timed:
        """The fragments of the very first step, read from ``stage`` before the loop; ``landed``
        waits for their tile, which is copied only if there is one."""
        copies = fetches(self.loop)
        first = tuple(self._fetch(c, Int(0), stage) for c in copies)
        body = self._if_in_range(self.k_range.start, (*landed, *first))
        return Block("load the first fragments", self._cited(copies, "double_buffer"), body)

    def _fetch(self, copy: Copy, k: Expr, stage: Stage) -> Fetch:
        return inner_loop.fetch(self.kernel, self.loop, copy, k, None, lambda _: stage)

    def _multiply(self, steps: tuple[Timed, ...]) -> Timed:
        """The steps of a tile, under what shaped them and their reads of shared memory; and what
        is done with the accumulators after them."""
        read = (o for c in fetches(self.loop) for o in c.origins if ".shared" in o)
        shaped = (*contraction(self.kernel).origins, *read, *self.loop.origins)
        groups = groups_of(self.kernel)
        promoted = groups.after_tile(self.k_range.stop) if groups else ()
        return Block(
            inner_loop.multiply_note(self.kernel), tuple(dict.fromkeys(shaped)), (*steps, *promoted)
        )

    def _multiply_reading_ahead(
        self,
        ring: Ring,
        note: str,
        publish: tuple[Timed, ...],
        exists: Expr | None = None,
        released: tuple[Timed, ...] = (),
    ) -> Timed:
        """The steps of a tile; at the last one ``publish`` makes the next tile readable, and its
        first fragments are read: always, or if it ``exists``.  Before that the tile is
        ``released``: its own fragments have all been read."""
        kernel, loop, copies = self.kernel, self.loop, fetches(self.loop)
        k, size = Var(loop.letter), names.block(loop.letter)
        origin = names.tile_origin(loop.letter)
        following = plus(k, step_of(loop))

        def read(step: Expr, stage: Stage) -> tuple[Fetch, ...]:
            return tuple(replace(self._fetch(c, following, stage), k=step) for c in copies)

        within = read(following, ring.stage)
        crossing: tuple[Timed, ...] = (*publish, *read(Int(0), ring.following_stage))
        if exists is not None:
            crossing = (If(exists, crossing),)
        if ring.advances_early:
            crossing = (*self._advanced(ring), *crossing)
        crossing = (*released, *crossing)
        last = Block(note, self._cited(copies, "double_buffer"), crossing)
        step = (
            If(less(following, size), within, (last,)),
            *inner_loop.multiply(kernel, loop, k, origin, lambda _: ring.stage),
        )
        unroll = inner_loop.unroll_of(kernel, loop, True)
        steps = For(loop.letter, Int(0), size, step_of(loop), step, unroll=unroll)
        scales = scales_read(kernel, origin, lambda _: ring.stage)
        return self._multiply((*scales, steps))

    def _advanced(self, ring: Ring) -> tuple[Timed, ...]:
        """The next stage is the present one, before its first fragments are read."""
        return ring.advance()

    def _copied_by(self) -> Origins:
        """The statements that say how the tiles are copied."""
        origins = (o for c in self.pipeline.produce for o in c.origins)
        return tuple(dict.fromkeys(o for o in origins if o.startswith("async_copy")))

    def _cited(self, copies: tuple[Copy, ...], directive: str) -> Origins:
        """The statements of one directive that shaped the tiles of these copies."""
        origins = (o for c in copies for o in self.kernel.buffer(c.dst).origins)
        return tuple(dict.fromkeys(o for o in origins if o.split()[0] == directive))
