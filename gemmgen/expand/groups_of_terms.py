"""When the accumulators of an instruction are folded into the kernel's, and begin anew.

A group of so many terms ends after the last of some tiles, or within one.  Groups are counted from
the first term that the block sums; after the last tile what there is is folded, however many terms
it has.
"""

from __future__ import annotations

from gemmgen.base.record import record
from gemmgen.expand.k_range import start_of
from gemmgen.ir import names
from gemmgen.ir.control import Block, If
from gemmgen.ir.edit import fold_of, pipeline_of
from gemmgen.ir.expanded import Timed
from gemmgen.ir.expr import Binary, Expr, Int
from gemmgen.ir.nodes import Fold, Kernel

NOTE = "promote the partial accumulators to f32"


@record
class Groups:
    """The groups of a block's terms: ``fold`` is done after each of them.

    ``step``: terms of a tile; ``start``: where those of the block begin along ``letter``.
    """

    fold: Fold
    letter: str
    step: int
    start: Expr

    @property
    def ends_each_tile(self) -> bool:
        """Whether every promotion interval ends at a tile boundary."""
        return self.fold.every <= self.step

    @property
    def ends_within(self) -> bool:
        """Whether a tile has several groups."""
        return self.fold.every < self.step

    def goes_on(self, k: Expr) -> Expr:
        """Whether the step at ``k`` within a tile has others of its group before it."""
        if self.ends_within:
            return Binary(">", Binary("%", k, names.PROMOTE), Int(0))
        later = Binary(">", k, Int(0))
        if self.ends_each_tile:
            return later
        before = Binary("%", self._summed(names.tile_origin(self.letter)), names.PROMOTE)
        return Binary("||", later, Binary(">", before, Int(0)))

    def after_step(
        self, k: Expr, step: Expr, ended: tuple[Timed, ...] = (), begun: tuple[Timed, ...] = ()
    ) -> tuple[Timed, ...]:
        """After the step at ``k`` within a tile: its group is ``ended``, and the next one may be
        ``begun``."""
        if not self.ends_within:
            return ()
        last = Binary("==", Binary("%", Binary("+", k, step), names.PROMOTE), Int(0))
        return (If(last, (self._folded((*ended, self.fold, *begun)),)),)

    def after_tile(self, stop: Expr) -> tuple[Timed, ...]:
        """After the steps of a tile, if its group goes no further; the block's terms end at
        ``stop``."""
        if self.ends_within:
            return ()
        body: tuple[Timed, ...] = (self.fold,)
        if not self.ends_each_tile:
            following = Binary("+", names.tile_origin(self.letter), names.block(self.letter))
            whole = Binary("==", Binary("%", self._summed(following), names.PROMOTE), Int(0))
            last = Binary(">=", following, stop)
            body = (If(Binary("||", whole, last), body),)
        return (self._folded(body),)

    def _summed(self, index: Expr) -> Expr:
        """The block's terms before ``index``."""
        return index if self.start == Int(0) else Binary("-", index, self.start)

    def _folded(self, body: tuple[Timed, ...]) -> Timed:
        return Block(NOTE, self.fold.origins, body)


def groups_of(kernel: Kernel) -> Groups | None:
    """The groups of terms of a kernel whose accumulators are folded."""
    fold, pipeline = fold_of(kernel), pipeline_of(kernel)
    if fold is None or pipeline is None:
        return None
    letter = pipeline.letter
    return Groups(fold, letter, pipeline.step, start_of(kernel, letter))
