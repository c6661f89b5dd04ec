"""What a launch's results depend on besides its element types: how its sums are added up."""

from __future__ import annotations

from gemmgen.base.record import record
from gemmgen.ir.atoms import ATOMS
from gemmgen.ir.edit import contraction, fold_of
from gemmgen.ir.nodes import Kernel


@record
class Arithmetic:
    """How the sums of a launch are added up, in one order or another.

    ``fraction``: bits after the leading one that sums keep while products are added to them, if
    they are fewer than those of the sums' type (``AtomTraits.fraction``).
    ``terms``: those whose sums are folded into others together (``Fold.every``); None: all.
    ``cuts``: elements of A and B are cut off where their type is rounded elsewhere
    (``AtomTraits.cuts``).
    ``products`` > 1 of parts of f32 are multiplied in place of one (``ir/decompositions.py``).
    """

    fraction: int | None = None
    terms: int | None = None
    products: int = 1
    cuts: bool = False

    @staticmethod
    def of(kernel: Kernel) -> Arithmetic:
        """That of the kernel with the contraction."""
        traits, fold = ATOMS[kernel.spread.atom], fold_of(kernel)
        products = 1 if traits.splits is None else contraction(kernel).products
        return Arithmetic(traits.fraction, fold.every if fold else None, products, traits.cuts)


PLAIN = Arithmetic()
"""Products of whole elements, in one sum of its type."""
