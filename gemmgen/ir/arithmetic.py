"""What a launch's results depend on besides its element types: how its accumulators are added
up."""

from __future__ import annotations

from gemmgen.base.record import record
from gemmgen.ir.atoms import ATOMS
from gemmgen.ir.decompositions import DECOMPOSITIONS
from gemmgen.ir.dtypes import DType
from gemmgen.ir.edit import contraction, promotion_of
from gemmgen.ir.nodes import Kernel
from gemmgen.ir.tensor_core_rules import SumRule, rule_of

_OF_F32 = 23


@record
class Arithmetic:
    """How the accumulators of a launch are added up, in one order or another.

    ``rule``: how tensor cores of the kernel's target add to accumulators of f32. ``terms``: those
    whose accumulators are promoted into others together (``Promote.every``); None: all. ``cuts``:
    elements of A and B are cut off where their type is rounded elsewhere (``AtomTraits.cuts``).
    ``products`` > 1 of terms of type ``into`` are computed in place of one
    (``ir/decompositions.py``).
    """

    rule: SumRule | None = None
    terms: int | None = None
    products: int = 1
    cuts: bool = False
    into: DType | None = None

    @staticmethod
    def of(kernel: Kernel, target: str, multiplied: DType) -> Arithmetic:
        """That of the kernel with the contraction, of elements of type ``multiplied``."""
        atom = kernel.spread.atom
        traits, promotion = ATOMS[atom], promotion_of(kernel)
        products, into = 1, None
        if traits.splits is not None:
            into, products = contraction(kernel).into, contraction(kernel).products
        rule = rule_of(target, atom, into or multiplied)
        every = promotion.every if promotion else None
        return Arithmetic(rule, every, products, traits.cuts, into)

    @property
    def fraction(self) -> int | None:
        """Bits after the leading one that accumulators keep while products are added to them, if
        they are fewer than those of f32."""
        return self.rule.bits if self.rule and self.rule.bits < _OF_F32 else None

    def split_share(self, depth: int) -> float:
        """The error bound of split f32 for K = ``depth``, as a share of the sum of |A * B|.

        Tensor cores add at least 4 products and the accumulator at a time, each truncated at the
        last bit of the greatest, 2^-23 of it, and then the new accumulator: (4 + 2) / 4 times 2^-23
        for each product of parts (Fasi, Higham, Mikaitis and Pranesh, PeerJ Computer Science 7,
        2021, have 4, 8 or 16).  Products that are left out are at most 2^-24 of their product,
        within what 4 in place of 8 leaves, or in ``Decomposition.lost``.  Each promotion interval
        loses a share of its own part of the sum; adding depth / terms of them in f32 loses as many
        times 2^-24.
        """
        terms = self.terms or depth
        return (self.split_factor * terms + depth / terms + 1 + self.lost) * 2.0**-24

    @property
    def lost(self) -> int:
        """What the terms of a product lose, in units of 2^-24 of it."""
        return DECOMPOSITIONS[self.into].lost if self.into else 0

    @property
    def split_factor(self) -> int:
        """What each term of a promotion interval adds to ``split_share``, in units of 2^-24."""
        return 3 * self.products


PLAIN = Arithmetic()
"""Products of whole elements, in one sum of its type."""
