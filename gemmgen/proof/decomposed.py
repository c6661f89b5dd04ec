"""Products of terms in the order in which a kernel adds them (``decompose``)."""

from __future__ import annotations

from typing import cast

import numpy as np

from gemmgen.base.record import record
from gemmgen.ir.atoms import ATOMS, Atom
from gemmgen.ir.decompositions import DECOMPOSITIONS, products_of
from gemmgen.ir.dtypes import DType
from gemmgen.ir.nodes import Contract
from gemmgen.numerics.formats import Real, held
from gemmgen.numerics.operators import Ints, row_scale


@record
class Decomposed:
    """How each element is split, and how many products of terms an atom computes."""

    into: DType
    terms: int
    products: int
    atom: Atom
    step: int = 0
    """Elements along k whose products are all computed before those of the next ones; 0: those of
    one instruction."""
    swapped: bool = False
    """Whether the contraction's first operand is B, so that of two products of equal size that
    with the greater term of A comes first."""

    @staticmethod
    def of(contract: Contract, step: int = 0, *, swapped: bool = False) -> Decomposed | None:
        """The split of a contraction; None if it multiplies whole elements. If the terms are
        separate tiles, all of a tile's ``step`` is multiplied for one product of terms before the
        next."""
        atom = ATOMS[contract.atom]
        if contract.into is None or atom.splits is None:
            return None
        how = (contract.into, contract.parts, contract.products, contract.atom)
        return Decomposed(*how, step if atom.in_place else 0, swapped)

    def expanded(self, a: Real, b: Real) -> tuple[Real, Real]:
        """A (M, K) and B (K, N) with ``products`` times the k, in the order of the products: those
        of the first step of an instruction, pair by pair of terms, then those of the next.  Rows of
        A and columns of B are scaled (``unscaled``)."""
        if self._is_scaled:
            with np.errstate(all="ignore"):
                a, b = a * _scales(a, -1), b * _scales(b, -2)
        order = self._order()
        size = len(order)
        missing = -a.shape[-1] % size
        a = np.pad(a, (*((0, 0) for _ in a.shape[:-1]), (0, missing)))
        b = np.pad(b, (*((0, 0) for _ in b.shape[:-2]), (0, missing), (0, 0)))
        of_a, of_b = self.split(a), self.split(b)
        pairs = products_of(self.terms, self.products)
        pairs = tuple((j, i) for i, j in pairs) if self.swapped else pairs
        steps = range(0, a.shape[-1], size)
        at = [(i, j, step + order) for step in steps for i, j in pairs]
        if not at:
            return a, b
        left = np.concatenate([of_a[i][..., k] for i, _, k in at], axis=-1)
        right = np.concatenate([of_b[j][..., k, :] for _, j, k in at], axis=-2)
        return left, right

    @property
    def _is_scaled(self) -> bool:
        return DECOMPOSITIONS[self.into].scaled

    def unscaled(self, total: Real, a: Real, b: Real) -> Real:
        """``total``, accumulated from what ``expanded`` makes of A (M, K) and B (K, N), without the
        scales."""
        if not self._is_scaled:
            return total
        one = np.float32(1)
        with np.errstate(all="ignore"):
            return total * (one / _scales(a, -1)) * (one / _scales(b, -2))

    def split(self, numbers: Real) -> tuple[Real, ...]:
        """The terms, the greatest first."""
        found: list[Real] = []
        with np.errstate(all="ignore"):
            for _ in range(self.terms):
                found.append(held(numbers, self.into))
                numbers = numbers - found[-1]
        return tuple(found)

    def _order(self) -> Ints:
        """The elements along k of a step, in the order of what PTX calls columns of A: those of a
        register of four lanes, lane by lane, and then those of the next register of a row."""
        if self.step:
            return np.arange(self.step)
        layout, k = ATOMS[self.atom].a, ATOMS[self.atom].k
        assert layout
        found = (layout.element(lane, e) for e in range(layout.registers) for lane in range(4))
        rows = [column for row, column in found if row == 0]
        pairs = np.array(rows).reshape(k // 8, 2, 4)  # register, element within it, lane
        return pairs.transpose(0, 2, 1).reshape(-1)


def _scales(numbers: Real, axis: int) -> Real:
    """The scale of each row (axis -1), or column (axis -2), of matrices; NaNs choose none."""
    largest = np.fmax.reduce(np.abs(numbers), axis=axis, initial=0.0, keepdims=True)
    return cast(Real, row_scale(largest))
