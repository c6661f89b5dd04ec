"""Tiles that warpgroups multiply where they lie in shared memory, one step's group of
multiplications after another (CUTLASS: warpgroup-wide MMA with one batch in flight).

A step waits for its tile, begins its multiplications, and then waits until those of the step before
have ended: their stage is read.  So tensor cores always have the next group to go on with.  The
accumulators are read after the last one.

The first multiplications of a tile of C do not read the accumulators, which are zeroed only where
there is nothing to multiply.

Where accumulators are promoted into others, each step waits for its own multiplications: of
accumulators that are under way in one branch and read in the other, compilers make accumulators
that are waited for in both.
"""

from __future__ import annotations

from gemmgen.base.record import record
from gemmgen.expand import pingpong
from gemmgen.expand.inner_loop import end_multiplies, group, multiply_note, plus
from gemmgen.expand.pipeline_roles import RolePipeline
from gemmgen.expand.pipeline_staged import StagedPipeline
from gemmgen.expand.pipeline_tma import TmaPipeline, wait
from gemmgen.expand.promotion_intervals import fenced_scales, groups_of, scales_read
from gemmgen.expand.ring import Ring
from gemmgen.ir import names
from gemmgen.ir.control import Block, If
from gemmgen.ir.edit import contraction, promotion_of
from gemmgen.ir.expanded import Release, Timed
from gemmgen.ir.expr import Binary, Expr, Int, Var
from gemmgen.ir.instruction import instruction
from gemmgen.ir.nodes import Init

READ = "the previous wgmma is done: its stage is free"
READ_NOW = "release the stage of this step"
END = "wait for the last wgmma: the accumulators are complete"


@record
class GroupPipeline(TmaPipeline):
    """The expansion of one pipeline, all of whose warps multiply and one of whose threads asks for
    tiles: for the stage of the step before once all know that it is read."""

    def zeroed(self, init: Init) -> tuple[Timed, ...]:
        return (init,) if promotion_of(self.kernel) else _unless_multiplied(self, init)

    def _body(self) -> tuple[Timed, ...]:
        ring = self._ring()
        barrier = instruction("sync_block")
        read = Block(READ, (), (instruction("wgmma_wait", Int(1)), barrier))
        read_now = Block(READ_NOW, (), (*fenced_scales(self.kernel), barrier))
        return (
            wait(ring, ring.stage),
            *scales_read(self.kernel, names.tile_origin(self.letter), lambda _: ring.stage),
            _issued(self, ring),
            read_now if promotion_of(self.kernel) else read,
            *self._issue_ahead(ring),
            *_promoted(self),
            ring.advance_with_phase(),
        )

    def _drain(self) -> tuple[Timed, ...]:
        return _ended(self)


@record
class GroupRolePipeline(RolePipeline):
    """The expansion of one pipeline whose tiles a producer copies: a consumer releases the stage of
    the step before, or its own where each step waits for its multiplications."""

    def zeroed(self, init: Init) -> tuple[Timed, ...]:
        return (init,) if promotion_of(self.kernel) else _unless_multiplied(self, init)

    def _body(self) -> tuple[Timed, ...]:
        ring = self._ring()
        return (
            *self._landed(ring, ring.stage),
            *scales_read(self.kernel, names.tile_origin(self.letter), lambda _: ring.stage),
            _issued(self, ring),
            self._read(ring),
            *_promoted(self),
            ring.advance_with_phase(),
        )

    def _read(self, ring: Ring) -> Timed:
        """Releases the stage that was read last."""
        if promotion_of(self.kernel):
            release = Release(ring.empty_at(ring.stage))
            return Block(READ_NOW, (), (*fenced_scales(self.kernel), release))
        later = Binary(">", names.tile_origin(self.letter), self.k_range.start)
        released = If(later, (Release(ring.empty_at(ring.before())),))
        return Block(READ, (), (instruction("wgmma_wait", Int(1)), released))

    def _drain(self) -> tuple[Timed, ...]:
        if not self._is_pingpong or promotion_of(self.kernel):
            return (*_ended(self), *self._last_released(), *super()._drain())
        # The other's first multiplications queue after this one's last: no tensor core waits.
        released = pingpong.release_other_early(self.kernel)
        skipped = pingpong.skipped(self.kernel, self._ring())
        return (released, *_ended(self), *self._last_released(), skipped)

    def _last_released(self) -> tuple[Timed, ...]:
        """Of a block's only tile no thread waits for the last stage."""
        if not self._goes_on or promotion_of(self.kernel):
            return ()
        ring = self._ring()
        some = Binary(">", self.k_range.stop, self.k_range.start)
        return (If(some, (Release(ring.empty_at(ring.before())),)),)


def _issued(pipeline: StagedPipeline, ring: Ring) -> Timed:
    """Begins the multiplications of the tile in the present stage, as a group."""
    loop, contract = pipeline.loop, contraction(pipeline.kernel)
    index: Expr = plus(names.tile_origin(loop.letter), Var(loop.letter))
    later = Binary(">", index, pipeline.k_range.start)
    body = group(pipeline.kernel, loop, (ring.stage, ring.stage), later)
    origins = dict.fromkeys((*contract.origins, *loop.origins))
    return Block(multiply_note(pipeline.kernel), tuple(origins), body)


def _promoted(pipeline: StagedPipeline) -> tuple[Timed, ...]:
    groups = groups_of(pipeline.kernel)
    return groups.after_tile(pipeline.k_range.stop) if groups else ()


def _ended(pipeline: StagedPipeline) -> tuple[Timed, ...]:
    """Ends the last multiplications, unless each step has ended its own."""
    if promotion_of(pipeline.kernel):
        return ()
    contract = contraction(pipeline.kernel)
    return (Block(END, contract.origins, (end_multiplies(pipeline.kernel),)),)


def _unless_multiplied(pipeline: StagedPipeline, init: Init) -> tuple[Timed, ...]:
    """The accumulators of no products."""
    k_range = pipeline.k_range
    nothing = Binary("==", k_range.stop, Int(0))
    if pipeline.kernel.work.parts > 1:
        nothing = Binary(">=", k_range.start, k_range.stop)
    return (If(nothing, (init,)),)
