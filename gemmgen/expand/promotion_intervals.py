"""When the accumulators of an instruction are promoted into the kernel's, and start again at zero.

A promotion interval ends with a tile along k, or within one.  Intervals are counted from the first
term that the block sums; the last one ends with the last tile, however many terms it has.
"""

from __future__ import annotations

from collections.abc import Callable

from gemmgen.base.record import record
from gemmgen.expand.k_range import start_of
from gemmgen.ir import names
from gemmgen.ir.buffers import Space
from gemmgen.ir.control import Block, If
from gemmgen.ir.edit import pipeline_of, promotion_of
from gemmgen.ir.expanded import ReadScales, Stage, Timed
from gemmgen.ir.expr import Binary, Expr, Int
from gemmgen.ir.instruction import instruction
from gemmgen.ir.nodes import Kernel, Promote

NOTE = "promote the partial accumulators to f32"
SCALED_NOTE = "scale the partial accumulators, and promote them to f32"
READ_NOTE = "the scales of this step"


@record
class PromotionIntervals:
    """The promotion intervals of a block: ``promotion`` is done after each of them.

    ``step``: terms of a tile; ``start``: where those of the block begin along ``letter``.
    """

    promotion: Promote
    letter: str
    step: int
    start: Expr

    @property
    def ends_each_tile(self) -> bool:
        """Whether every promotion interval ends at a tile boundary."""
        return self.promotion.every <= self.step

    @property
    def ends_within(self) -> bool:
        """Whether a tile has several intervals."""
        return self.promotion.every < self.step

    def goes_on(self, k: Expr) -> Expr:
        """Whether the step at ``k`` within a tile is not the first of its interval."""
        if self.ends_within:
            return Binary(">", k % names.PROMOTE, Int(0))
        later = Binary(">", k, Int(0))
        if self.ends_each_tile:
            return later
        before = self._summed(names.tile_origin(self.letter)) % names.PROMOTE
        return Binary("||", later, Binary(">", before, Int(0)))

    def after_step(
        self, k: Expr, step: Expr, ended: tuple[Timed, ...] = (), begun: tuple[Timed, ...] = ()
    ) -> tuple[Timed, ...]:
        """After the step at ``k`` within a tile: its interval is ``ended``, and the next one may be
        ``begun``."""
        if not self.ends_within:
            return ()
        last = Binary("==", (k + step) % names.PROMOTE, Int(0))
        return (If(last, (self._promoted((*ended, self.promotion, *begun)),)),)

    def after_tile(self, stop: Expr) -> tuple[Timed, ...]:
        """After the steps of a tile, if its interval goes no further; the block's terms end at
        ``stop``."""
        if self.ends_within:
            return ()
        body: tuple[Timed, ...] = (self.promotion,)
        if not self.ends_each_tile:
            following = names.tile_origin(self.letter) + names.block(self.letter)
            whole = Binary("==", self._summed(following) % names.PROMOTE, Int(0))
            last = Binary(">=", following, stop)
            body = (If(Binary("||", whole, last), body),)
        return (self._promoted(body),)

    def _summed(self, index: Expr) -> Expr:
        """The block's terms before ``index``."""
        return index if self.start == Int(0) else index - self.start

    def _promoted(self, body: tuple[Timed, ...]) -> Timed:
        note = SCALED_NOTE if self.promotion.scales else NOTE
        return Block(note, self.promotion.origins, body)


def scales_read(kernel: Kernel, origin: Expr, stage: Callable[[str], Stage]) -> tuple[Timed, ...]:
    """Before the products of the tile at ``origin``: its scales, if it has any; ``stage`` is that
    of a tile in shared memory."""
    promotion = promotion_of(kernel)
    if promotion is None or not promotion.scales:
        return ()
    tiles = [name for name in promotion.scales if kernel.buffer(name).space is Space.SHARED]
    read = ReadScales(promotion.scales, origin, stage(tiles[0]) if tiles else None)
    return (Block(READ_NOTE, (), (read,)),)


def fenced_scales(kernel: Kernel) -> tuple[Timed, ...]:
    """The fence that has TMA wait for the threads' reads of scales in a stage (decision 53); none
    if only tensor cores read it."""
    promotion = promotion_of(kernel)
    scales = promotion.scales if promotion else ()
    read = any(kernel.buffer(name).space is Space.SHARED for name in scales)
    return (instruction("fence_async"),) if read else ()


def groups_of(kernel: Kernel) -> PromotionIntervals | None:
    """The promotion intervals of a kernel whose accumulators are promoted, if they are."""
    promotion, pipeline = promotion_of(kernel), pipeline_of(kernel)
    if promotion is None or pipeline is None:
        return None
    letter = pipeline.letter
    return PromotionIntervals(promotion, letter, pipeline.step, start_of(kernel, letter))
