"""What tensor cores accumulate, bit for bit, in NumPy: ``ir/tensor_core_rules.py``, evaluated.

Products of factors of at most 11 bits are exact in f64, also scaled by a power of two, and so is a
sum of those that are cut off at a common place.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log2, prod

import numpy as np
import numpy.typing as npt

from gemmgen.base.record import record
from gemmgen.ir.dtypes import DTYPES, DType
from gemmgen.ir.tensor_core_rules import SumRule
from gemmgen.numerics.formats import F32, F64, Real

_EXPONENT, _FRACTION = 0x7FF << 52, 52
"""The exponent's bits of an f64, and the number of those after the leading one."""
_LEAST = -126
"""The exponent of the least normal f32."""
_AT_ONCE = 1 << 15
"""Products that are computed side by side: as many as a cache holds."""


@record
class TensorCoreAdditions:
    """Instructions of ``k`` products of numbers of types ``a`` and ``b``, whose accumulators are
    f32."""

    rule: SumRule
    k: int
    a: DType
    b: DType

    def accumulate(self, a: Real, b: Real) -> F32:
        """A (M, K) times B (K, N), one instruction after another, from accumulators of zero;
        beyond K the last one has zeros.  Leading axes are batches, and broadcast."""
        batches = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        return self.added(np.zeros((*batches, a.shape[-2], b.shape[-1]), np.float32), a, b)

    def added(self, acc: Real, a: Real, b: Real) -> F32:
        """The same, added to the accumulators ``acc`` (M, N)."""
        if self._is_exact(acc, a, b):
            return (a.astype(np.float64) @ b.astype(np.float64) + acc + 0.0).astype(np.float32)
        found = np.array(acc, np.float32)
        axes, missing = found.ndim, -a.shape[-1] % self.k
        a, b = (x.reshape((*(1,) * (axes - x.ndim), *x.shape)) for x in (a, b))
        # By k first: NumPy is fast at adding and maxima over the first axis.
        left = np.moveaxis(a.astype(np.float64), -1, 0)[..., None]
        right = np.moveaxis(b.astype(np.float64), -2, 0)[..., None, :]
        left, right = (np.pad(x, ((0, missing), *((0, 0),) * axes)) for x in (left, right))
        of_left, of_right = self._scale(left, self.a), self._scale(right, self.b)
        across = self.rule.group * prod(found.shape[:-2]) * found.shape[-1]
        rows = max(1, _AT_ONCE // max(1, across))
        with np.errstate(all="ignore"):
            for first in range(0, found.shape[-2], rows):
                own = np.s_[..., first : first + rows, :]
                factors = left[own], right, of_left[own], of_right
                found[own] = self._chain(found[own], factors)
        return found

    def _is_exact(self, acc: Real, a: Real, b: Real) -> bool:
        """Whether nothing is cut off, because all are small integers."""
        with np.errstate(invalid="ignore", over="ignore"):
            integers = all(np.array_equal(x, np.rint(x)) for x in (acc, a, b))
            most = np.abs(a).max(initial=0.0) * np.abs(b).max(initial=0.0) * a.shape[-1]
            most += np.abs(acc).max(initial=0.0)
        return integers and bool(most < 2.0 ** (min(self.rule.bits, self.rule.fraction) + 1))

    def _scale(self, numbers: F64, dtype: DType) -> F64:
        """2 to the power of each number's exponent; 0 for a zero, and for what is not finite."""
        traits = DTYPES["f16" if self.rule.converted else dtype]
        return _powers(numbers, int(log2(traits.tiny)) + traits.digits - 1)

    def _chain(self, acc: F32, factors: Sequence[F64]) -> F32:
        groups = self.rule.groups(self.k)
        for first in range(0, factors[0].shape[0], self.k):
            partial = np.zeros_like(acc) if self.rule.converted else acc
            for group in groups:
                at = [first + k for k in group]
                partial = self._group(partial, *(x[at] for x in factors))
            acc = acc + partial if self.rule.converted else partial
        return acc

    def _group(self, acc: F32, a: F64, b: F64, of_a: F64, of_b: F64) -> F32:
        """Products that are added at once.  What is not finite in ``acc`` or a product makes the
        sum so."""
        rule, wide = self.rule, acc.astype(np.float64)
        largest = np.maximum(np.max(of_a * of_b, axis=0), _powers(wide, _LEAST))
        largest = np.maximum(largest, 2.0**rule.least)
        up = 2.0**rule.fraction / largest
        total = np.trunc(a * b * up).sum(axis=0) + np.trunc(wide * up)
        return rounded_toward_zero(total * (largest * 2.0**-rule.fraction), rule.bits)


def _powers(numbers: F64, least: int) -> F64:
    """2 to the power of each number's exponent, at least ``least``; 0 for a zero, and for what is
    not finite."""
    found = np.asarray((_bits(numbers) & _EXPONENT).view(np.float64))
    return np.where((numbers == 0) | np.isinf(found), 0.0, np.maximum(found, 2.0**least))


def rounded_toward_zero(numbers: F64, bits: int) -> F32:
    """Numbers of f32's range with ``bits`` after the leading one; zeros are positive."""
    kept = (_bits(numbers) & ~((1 << (_FRACTION - bits)) - 1)).view(np.float64)
    small = 2.0 ** (bits - _LEAST)
    kept = np.where(np.abs(numbers) < 2.0**_LEAST, np.trunc(numbers * small) / small, kept)
    return (kept + 0.0).astype(np.float32)


def _bits(numbers: F64) -> npt.NDArray[np.int64]:
    return np.ascontiguousarray(numbers).view(np.int64)
