"""The order in which a schedule's kernel adds the terms of a sum: bits follow from it."""

from __future__ import annotations

from gemmgen.base.record import record
from gemmgen.ir.edit import pipeline_of
from gemmgen.ir.nodes import Program
from gemmgen.numerics import reference
from gemmgen.numerics.formats import Real


@record
class Summation:
    """``parts`` ranges of whole steps of ``step`` terms, each summed term by term.

    ``ordered``: the parts are added in the order of their numbers, by ``groups`` of neighbours;
    else in that of the blocks.
    """

    parts: int = 1
    step: int = 1
    ordered: bool = True
    groups: int = 1
    width: int = 0
    """Of a piece of a lane's terms, where the lanes of a warp share a sum; else 0."""

    @staticmethod
    def of(program: Program) -> Summation:
        kernel = program.main
        pipeline, work = pipeline_of(kernel), kernel.work
        step, ordered = pipeline.step if pipeline else 1, work.reduce == "ordered"
        terms = kernel.spread.k_layout
        return Summation(work.parts, step, ordered, work.groups, terms.width if terms else 0)

    @property
    def follows_blocks(self) -> bool:
        """Do its bits depend on which block comes first?"""
        return not self.ordered and self.parts > 2

    def sums(self, a: Real, b: Real, *, backwards: bool = False) -> Real:
        """A (M, K) times B (K, N) in the kernel's very bits, where blocks come in ascending order,
        or ``backwards``."""
        if self.width:
            return reference.lanes(a, b, self.step, self.width)
        reverse = backwards and self.follows_blocks
        return reference.split(a, b, self.parts, self.step, groups=self.groups, backwards=reverse)
