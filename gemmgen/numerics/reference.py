"""GEMM in NumPy: exact oracles, error bounds, inputs, and a comparison.

Matrices are A (M, K), B (K, N), C (M, N), as numbers to compute with: f64 if sums are, else f32,
which represents f16 and bf16; leading axes are batches, and broadcast.  A caller whose kernel
stores another layout transposes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from math import prod

import numpy as np
import numpy.typing as npt

from gemmgen.base.record import record
from gemmgen.ir.dtypes import DType
from gemmgen.numerics.fma import fused
from gemmgen.numerics.formats import (
    F64,
    STORAGE,
    Real,
    Stored,
    bits,
    held,
    is_nan,
    is_poison,
    numbers,
    stored,
)

Accumulate = Callable[[Real, Real], Real]
"""A product of matrices; leading axes are batches."""

_TOGETHER = 1 << 14
"""Elements of sums that are computed side by side: as many as a cache holds."""


def sequential(a: Real, b: Real) -> Real:
    """``acc = 0; for k: acc = fma(a[m, k], b[k, n], acc)`` for each m and n, bit for bit."""
    if _is_exact(a, b):
        return (a.astype(np.float64) @ b.astype(np.float64) + 0.0).astype(a.dtype)
    batches = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    acc: Real = np.zeros((*batches, a.shape[-2], b.shape[-1]), a.dtype)
    for k in range(a.shape[-1]):
        acc = fused(a[..., :, k, None], b[..., None, k, :], acc)
    return acc


def _is_exact(a: Real, b: Real) -> bool:
    """Whether all sums are exact in every order, because the integers are small."""
    with np.errstate(invalid="ignore"):
        integers = np.array_equal(a, np.rint(a)) and np.array_equal(b, np.rint(b))
        largest = np.abs(a).max(initial=0.0) * np.abs(b).max(initial=0.0) * a.shape[-1]
    return integers and bool(largest <= 2.0 ** (np.finfo(a.dtype).nmant + 1))


def promoted(a: Real, b: Real, terms: int) -> Real:
    """The sums of ranges of ``terms`` along k (0: of all), each by ``sequential``, added one after
    another."""
    return _sum_in_order(_totals(a, b, _intervals(range(a.shape[-1]), terms)))


def _intervals(whole: range, terms: int) -> list[range]:
    """``whole`` in ranges of ``terms``, the last one shorter; 0: in one."""
    size = terms or max(1, len(whole))
    return [whole[first : first + size] for first in range(0, max(1, len(whole)), size)]


def split(
    a: Real,
    b: Real,
    parts: int,
    step: int,
    *,
    groups: int = 1,
    backwards: bool = False,
    terms: int = 0,
    factors: tuple[Real | None, ...] = (None, None),
    accumulate: Accumulate = sequential,
) -> Real:
    """Split-K: what ``parts`` ranges of k ``accumulate``, each ``promoted`` every ``terms``, added
    one after another within each of ``groups`` of consecutive parts, and then the groups' sums.

    A range has ceil(ceil(K / step) / parts) * step elements, the last ones fewer or none.
    ``backwards`` adds the last part first.  With ``factors`` of the elements of ``a`` and ``b``,
    the same for all of an interval of ``terms``, each interval's sum is multiplied by their
    product, and added by one fused multiply-add.
    """
    whole = range(a.shape[-1])
    steps = -(-len(whole) // step)
    chunk = -(-steps // parts) * step
    ranges = [whole[part * chunk : (part + 1) * chunk] for part in range(parts)]
    if backwards:
        ranges.reverse()
    intervals = [_intervals(each, terms) for each in ranges]
    found = iter(_totals(a, b, [one for each in intervals for one in each], accumulate))
    totals = [_scaled_sum(list(islice(found, len(each))), each, factors) for each in intervals]
    size = parts // groups
    return _sum_in_order([_sum_in_order(totals[at : at + size]) for at in range(0, parts, size)])


def lanes(a: Real, b: Real, step: int, width: int, count: int = 32) -> Real:
    """Split-K within a warp: the sums of ``count`` lanes, added by a butterfly that begins with
    lanes ``count / 2`` apart.

    K is padded with zeros to a multiple of ``step``.  Vectors of ``width`` elements along k are
    distributed cyclically to the lanes, each of which sums its own by ``sequential``.
    """
    missing = (0, -a.shape[-1] % step)
    a = np.pad(a, (*((0, 0) for _ in a.shape[:-1]), missing))
    b = np.pad(b, (*((0, 0) for _ in b.shape[:-2]), missing, (0, 0)))
    k_elements = range(a.shape[-1])
    own = [[k for k in k_elements if k // width % count == lane] for lane in range(count)]
    totals = _totals(a, b, own)
    with np.errstate(all="ignore"):
        while len(totals) > 1:
            half = len(totals) // 2
            totals = [totals[i] + totals[i + half] for i in range(half)]
    return totals[0]


def _totals(
    a: Real, b: Real, terms: Sequence[Sequence[int]], accumulate: Accumulate = sequential
) -> list[Real]:
    """Of each of ``terms``, some elements of k, the sum by ``accumulate``.

    Those of equally many are computed side by side, up to ``_TOGETHER`` elements: most of the time
    goes to calls of NumPy.
    """
    axes = max(a.ndim, b.ndim)
    a, b = (x.reshape((*(1,) * (axes - x.ndim), *x.shape)) for x in (a, b))
    batches = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    at_once = max(1, _TOGETHER // max(1, prod(batches) * a.shape[-2] * b.shape[-1]))
    alike: dict[int, list[int]] = {}
    for number, own in enumerate(terms):
        alike.setdefault(len(own), []).append(number)
    found: dict[int, Real] = {}
    for same in alike.values():
        for first in range(0, len(same), at_once):
            some = same[first : first + at_once]
            left = np.stack([a[..., list(terms[each])] for each in some])
            right = np.stack([b[..., list(terms[each]), :] for each in some])
            found |= zip(some, accumulate(left, right), strict=True)
    return [found[number] for number in range(len(terms))]


def _scaled_sum(
    found: list[Real], intervals: list[range], factors: tuple[Real | None, ...]
) -> Real:
    """What is ``found`` for ``intervals`` of k, added one after another, each times the ``factors``
    there, if there are any."""
    of_a, of_b = factors
    if of_a is None and of_b is None:
        return _sum_in_order(found)
    total = np.zeros_like(found[0])
    for own, terms in zip(found, intervals, strict=True):
        if not terms:
            continue
        one = own.dtype.type(1)
        row = one if of_a is None else of_a[..., :, terms[0], None]
        column = one if of_b is None else of_b[..., None, terms[0], :]
        with np.errstate(all="ignore"):
            total = fused(own, np.broadcast_to(row * column, own.shape), total)
    return total


def _sum_in_order(sums: list[Real]) -> Real:
    """The first of ``sums``, and the others added to it one after another."""
    total = sums[0]
    with np.errstate(all="ignore"):
        for other in sums[1:]:
            total = total + other
    return total


@record
class Comparison:
    """The comparison of two results.

    ``reason`` is None if they agree.  ``index``, ``got`` and ``want`` are those of the first
    difference, ``differing`` counts the differences, and ``max_ulps`` is the greatest distance over
    all elements, in units in the last place of C's type.
    """

    reason: str | None
    index: tuple[int, ...] = ()
    got: float = 0.0
    want: float = 0.0
    differing: int = 0
    max_ulps: int = 0

    @property
    def equal(self) -> bool:
        return self.reason is None

    def text(self) -> str:
        """One line for a person."""
        if self.reason is None:
            return f"equal (greatest distance {self.max_ulps} ulps)"
        if not self.differing:
            return self.reason
        at = ", ".join(map(str, self.index))
        return (
            f"{self.reason}: [{at}] is {self.got!r}, should be {self.want!r}; "
            f"{self.differing} wrong in all, by at most {self.max_ulps} ulps"
        )


def compare(
    got: npt.NDArray[np.generic], want: Real, bound: F64 | None = None, dtype: DType = "f32"
) -> Comparison:
    """Compares elements stored as ``dtype`` with numbers, which are rounded to it once: their bits
    (any NaN equals any NaN, 0 is not -0), or with ``bound`` the absolute error; infinity is right
    for a number that ``dtype`` can't hold.

    Poison in ``got`` is never right, even if a NaN is expected.
    """
    if got.shape != want.shape:
        return Comparison(f"wrong shape: {got.shape}, should be {want.shape}")
    if got.dtype != STORAGE[dtype]:
        return Comparison(f"wrong type: {got.dtype}, should be {STORAGE[dtype]}")
    rounded = stored(want, dtype)
    unwritten = is_poison(got, dtype)
    both_nan = is_nan(got, dtype) & np.isnan(want)
    found = numbers(got, dtype)
    if bound is None:
        right = bits(got) == bits(rounded)
        reason = "wrong bits"
    else:
        with np.errstate(invalid="ignore"):
            right = (found == want) | (np.abs(found.astype(np.float64) - want) <= bound)
            right |= np.isinf(found) & (held(want + np.copysign(bound, found), dtype) == found)
        reason = "error beyond the bound"
    wrong = unwritten | ~(right | both_nan)
    ulps = _greatest_distance(got, rounded, dtype)
    if not wrong.any():
        return Comparison(None, max_ulps=ulps)
    index = tuple(int(i) for i in np.argwhere(wrong)[0])
    if unwritten[index]:
        reason = "never written, or computed from what was never written"
    elif np.isnan(found[index]) != np.isnan(want[index]):
        reason = "NaN in one result alone"
    count = int(np.count_nonzero(wrong))
    should = numbers(rounded, dtype) if bound is None else want
    return Comparison(reason, index, float(found[index]), float(should[index]), count, ulps)


def _greatest_distance(got: npt.NDArray[np.generic], want: Stored, dtype: DType) -> int:
    both = ~(is_nan(got, dtype) | is_nan(want, dtype))
    steps = np.abs(_ordered(got[both]) - _ordered(want[both]))
    return int(steps.max(initial=0))


def _ordered(values: npt.NDArray[np.generic]) -> npt.NDArray[np.float64]:
    """Integers in the order of the elements, 1 apart for adjacent ones; both zeros are 0."""
    found = bits(values)
    sign = found.dtype.type(1 << (8 * found.itemsize - 1))
    magnitude = (found & ~sign).astype(np.float64)
    return np.where(found & sign != 0, -magnitude, magnitude)
