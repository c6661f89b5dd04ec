"""The bits of C that a summation order's value states, without the program that it was read from.

Products of one accumulation are added as tensor cores of a target do.
"""

from __future__ import annotations

from itertools import pairwise, product
from math import ceil

import numpy as np
import numpy.typing as npt

from gemmgen.ir.atoms import ATOMS
from gemmgen.ir.tensor_core_rules import rule_of
from gemmgen.numerics.fma import fused
from gemmgen.numerics.formats import held
from gemmgen.numerics.tensor_core_additions import TensorCoreAdditions
from gemmgen.summation import SummationOrder
from gemmgen.summation.order_reading import instruction_of

F32 = npt.NDArray[np.float32]
Element = tuple[int, int, int]
"""An element along k, and the terms of A and B that are multiplied."""


def accumulators(order: SummationOrder, a: F32, b: F32, target: str) -> F32:
    """The accumulators of A (M, K) times B (K, N), as ``order`` says, on ``target``."""
    s, depth = order.slices, a.shape[1]
    if s.count == 1:
        return _slice(order, a, b, range(depth), target)
    chunk = ceil(ceil(depth / s.step) / s.count) * s.step
    parts = [
        _slice(order, a, b, range(min(i * chunk, depth), min((i + 1) * chunk, depth)), target)
        for i in range(s.count)
    ]
    assert s.ordered
    size = s.count // s.groups
    return _in_order([_in_order(parts[first : first + size]) for first in range(0, s.count, size)])


def _slice(order: SummationOrder, a: F32, b: F32, elements: range, target: str) -> F32:
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
    core = _core(order, target)
    if core is not None:
        found = [_instructions(order, core, a, b, each) for each in intervals]
    else:
        found = [_products(order, a, b, _with_terms(order, each)) for each in intervals]
    return _in_order([np.zeros((len(a), b.shape[1]), np.float32), *found])


def _with_terms(order: SummationOrder, elements: range) -> list[Element]:
    if not order.terms:
        return [(k, 0, 0) for k in elements]
    blocks = [
        elements[i : i + order.pair_extent] for i in range(0, len(elements), order.pair_extent)
    ]
    return [(k, i, j) for block in blocks for i, j in order.terms for k in block]


def _core(order: SummationOrder, target: str) -> TensorCoreAdditions | None:
    """The instruction; None: fused multiply-adds."""
    for name, traits in ATOMS.items():
        if instruction_of(name) == order.instruction and order.multiplied[0] in traits.types:
            rule = rule_of(target, name, order.multiplied[0])
            return TensorCoreAdditions(rule, order.depth, *order.multiplied) if rule else None
    return None


def _instructions(
    order: SummationOrder, core: TensorCoreAdditions, a: F32, b: F32, elements: range
) -> F32:
    """One instruction after another; where one is short, the rest is zeros."""
    of_a, of_b = (_terms(order, x) for x in (a, b))
    extent = order.pair_extent or len(elements)
    parts = [elements[i : i + extent] for i in range(0, len(elements), extent)]
    left, right = list[F32](), list[F32]()
    for part, (i, j) in product(parts, order.terms or ((0, 0),)):
        missing = -len(part) % core.k
        pad = (missing, 0) if order.aligned == "last" else (0, missing)
        left.append(np.pad(of_a[i][:, list(part)], ((0, 0), pad)))
        right.append(np.pad(of_b[j][list(part)], (pad, (0, 0))))
    return core.accumulate(np.hstack(left), np.vstack(right))


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
