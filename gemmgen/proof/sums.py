"""The order in which a schedule's kernel adds products, which determines the bits of a sum."""

from __future__ import annotations

from gemmgen.base.record import record
from gemmgen.ir.edit import pipeline_of
from gemmgen.ir.nodes import Program
from gemmgen.numerics import reference
from gemmgen.numerics.formats import Real


@record
class Summation:
    """``parts`` ranges of whole steps of ``step`` elements, each summed in the order of k.

    ``ordered``: the parts are added in the order of their numbers, in ``groups`` of consecutive
    ones; else in the order of the blocks.
    """

    parts: int = 1
    step: int = 1
    ordered: bool = True
    groups: int = 1
    width: int = 0
    """Contiguous k elements of a lane, if the lanes of a warp split k; else 0."""

    @staticmethod
    def of(program: Program) -> Summation:
        kernel = program.main
        pipeline, work = pipeline_of(kernel), kernel.work
        step, ordered = pipeline.step if pipeline else 1, work.reduce == "ordered"
        k_layout = kernel.spread.k_layout
        return Summation(work.parts, step, ordered, work.groups, k_layout.width if k_layout else 0)

    @property
    def follows_blocks(self) -> bool:
        """Whether its bits depend on the order of the blocks."""
        return not self.ordered and self.parts > 2

    def sums(self, a: Real, b: Real, *, backwards: bool = False) -> Real:
        """A (M, K) times B (K, N) with the kernel's bits, for blocks in ascending order, or
        ``backwards``."""
        if self.width:
            return reference.lanes(a, b, self.step, self.width)
        reverse = backwards and self.follows_blocks
        return reference.split(a, b, self.parts, self.step, groups=self.groups, backwards=reverse)
