"""The order in which a schedule's kernel adds products, which determines the bits of a sum."""

from __future__ import annotations

import numpy as np

from gemmgen.base.record import record
from gemmgen.ir.atoms import ATOMS
from gemmgen.ir.edit import begins_early, contraction, pipeline_of, promotion_of
from gemmgen.ir.nodes import Program
from gemmgen.ir.tensor_core_rules import rule_of
from gemmgen.numerics import reference
from gemmgen.numerics.formats import Real, wrapped
from gemmgen.numerics.tensor_core_additions import TensorCoreAdditions
from gemmgen.proof.decomposed import Decomposed

Factors = tuple[Real | None, ...]
"""Of each element of A and of B, in their roles."""


@record
class Summation:
    """``parts`` ranges of whole steps of ``step`` elements, each summed in the order of k, or as
    tensor cores do; every ``terms`` of them apart, if they are not 0.

    ``ordered``: the parts are added in the order of their numbers, in ``groups`` of consecutive
    ones; else in the order of the blocks.
    """

    parts: int = 1
    step: int = 1
    ordered: bool = True
    groups: int = 1
    width: int = 0
    """Contiguous k elements of a lane, if the lanes of a warp split k; else 0."""
    wraps: bool = False
    """Whether sums are integers, modulo 2^32."""
    terms: int = 0
    early: bool = False
    """Whether the first step is the ragged one."""
    split: Decomposed | None = None
    """How elements are split (``decompose``); None if they are not."""
    core: TensorCoreAdditions | None = None
    """What adds the products; None: fused multiply-adds, one after another."""
    scaled: bool = False
    """Whether the sum of each ``terms`` is multiplied by the factors of its blocks; else each
    element is, if it has one."""

    @staticmethod
    def of(program: Program, target: str | None = None) -> Summation:
        """``target`` replaces the program's own: that of the GPU that runs it."""
        kernel = program.main
        pipeline, work = pipeline_of(kernel), kernel.work
        step, ordered = pipeline.step if pipeline else 1, work.reduce == "ordered"
        k_layout = kernel.spread.k_layout
        width, wraps = k_layout.width if k_layout else 0, program.problem.accumulate == "i32"
        promotion, early = promotion_of(kernel), begins_early(kernel)
        terms, split = promotion.every if promotion else 0, _decomposed(program, step)
        how = (work.parts, step, ordered, work.groups, width, wraps)
        core = _core(program, target or program.target, split)
        scaled = promotion is not None and bool(promotion.scales)
        return Summation(*how, terms, early, split, core, scaled)

    @property
    def follows_blocks(self) -> bool:
        """Whether its bits depend on the order of the blocks."""
        return not self.ordered and self.parts > 2

    def sums(
        self, a: Real, b: Real, factors: Factors = (None, None), *, backwards: bool = False
    ) -> Real:
        """A (M, K) times B (K, N) with the kernel's bits, for blocks in ascending order, or
        ``backwards``; ``factors`` are those of their elements, if they have scales."""
        if not self.scaled:
            a, b = (x if own is None else x * own for x, own in zip((a, b), factors, strict=True))
        if self.wraps:
            return wrapped(reference.sequential(a, b))
        if self.width:
            return reference.lanes(a, b, self.step, self.width)
        reverse, step, terms = backwards and self.follows_blocks, self.step, self.terms
        whole = a, b
        if self.early and (self.terms or self.core):
            a, b = self._from_the_first_step(a, b)
        if self.split:
            a, b = self.split.expanded(a, b)
            step, terms = step * self.split.products, terms * self.split.products
        total = reference.split(
            *(a, b, self.parts, step),
            groups=self.groups,
            backwards=reverse,
            terms=terms,
            factors=factors if self.scaled else (None, None),
            accumulate=self.core.accumulate if self.core else reference.sequential,
        )
        if self.split:
            total = self.split.unscaled(total, *whole)
        if not self.split or np.isfinite(total).all():
            return total
        return np.where(np.isfinite(total), total, reference.sequential(*whole))

    def _from_the_first_step(self, a: Real, b: Real) -> tuple[Real, Real]:
        """The operands with the zeros that a ragged first step begins with."""
        before = (-a.shape[-1] % self.step, 0)
        none = (0, 0)
        a = np.pad(a, (*(none for _ in a.shape[:-1]), before))
        return a, np.pad(b, (*(none for _ in b.shape[:-2]), before, none))


def _core(program: Program, target: str, split: Decomposed | None) -> TensorCoreAdditions | None:
    """The program's instruction, if tensor cores of ``target`` add its products by a rule."""
    atom, problem = program.main.spread.atom, program.problem.written
    types = (split.into, split.into) if split else (problem.a.dtype, problem.b.dtype)
    rule = rule_of(target, atom, types[0])
    return TensorCoreAdditions(rule, ATOMS[atom].k, *types) if rule else None


def _decomposed(program: Program, step: int) -> Decomposed | None:
    """Parts that an instruction reads in place are there once a kernel splits the operands:
    before, whole elements are multiplied."""
    contract = contraction(program.main)
    if ATOMS[contract.atom].in_place and not program.splits:
        return None
    return Decomposed.of(contract, step, swapped=program.problem.swapped)
