"""The bits of C that a summation order's value states, without the program that it was read from.

Products of one accumulation are added in the order of k, as the CPU's models of tensor cores do.
"""

from __future__ import annotations

from itertools import pairwise
from math import ceil

import numpy as np
import numpy.typing as npt

from gemmgen.numerics.fma import fused
from gemmgen.numerics.formats import held
from gemmgen.summation import SummationOrder

F32 = npt.NDArray[np.float32]
Element = tuple[int, int, int]
"""An element along k, and the terms of A and B that are multiplied."""


def accumulators(order: SummationOrder, a: F32, b: F32) -> F32:
    """The accumulators of A (M, K) times B (K, N), as ``order`` says."""
    s, depth = order.slices, a.shape[1]
    if s.count == 1:
        return _slice(order, a, b, range(depth))
    chunk = ceil(ceil(depth / s.step) / s.count) * s.step
    parts = [
        _slice(order, a, b, range(min(i * chunk, depth), min((i + 1) * chunk, depth)))
        for i in range(s.count)
    ]
    assert s.ordered
    size = s.count // s.groups
    return _in_order([_in_order(parts[first : first + size]) for first in range(0, s.count, size)])


def _slice(order: SummationOrder, a: F32, b: F32, elements: range) -> F32:
    """The sum of adjacent ``elements`` along k."""
    count, width = order.lanes
    if count > 1:
        lanes = [
            _products(order, a, b, [(k, 0, 0) for k in elements if k // width % count == lane])
            for lane in range(count)
        ]
        while len(lanes) > 1:
            half = len(lanes) // 2
            lanes = [lanes[i] + lanes[i + half] for i in range(half)]
        return lanes[0]
    intervals = [elements]
    if order.interval:
        step, size = order.interval_step, order.interval
        before = -len(elements) % step if step else 0
        ends = range(size - before, len(elements) + size, size)
        cuts = [0, *(max(0, min(end, len(elements))) for end in ends)]
        intervals = [elements[i:j] for i, j in pairwise(cuts) if i < j]
    found = [_products(order, a, b, _with_terms(order, each)) for each in intervals]
    return _in_order([np.zeros((len(a), b.shape[1]), np.float32), *found])


def _with_terms(order: SummationOrder, elements: range) -> list[Element]:
    if not order.terms:
        return [(k, 0, 0) for k in elements]
    blocks = [
        elements[i : i + order.pair_extent] for i in range(0, len(elements), order.pair_extent)
    ]
    return [(k, i, j) for block in blocks for i, j in order.terms for k in block]


def _products(order: SummationOrder, a: F32, b: F32, elements: list[Element]) -> F32:
    """One fma after another."""
    of_a, of_b = (_terms(order, x) for x in (a, b))
    total = np.zeros((len(a), b.shape[1]), np.float32)
    for k, i, j in elements:
        total = fused(of_a[i][:, k, None], of_b[j][None, k, :], total).astype(np.float32)
    return total


def _terms(order: SummationOrder, numbers: F32) -> list[F32]:
    if not order.terms:
        return [numbers]
    found: list[F32] = []
    for _ in range(3):
        found.append(held(numbers, order.multiplied[0]).astype(np.float32))
        numbers = numbers - found[-1]
    return found


def _in_order(found: list[F32]) -> F32:
    total = found[0]
    for each in found[1:]:
        total = total + each
    return total
