"""Integers of more bits than one bf16 term has, whose sums are exact in every order."""

from __future__ import annotations

import numpy as np

from gemmgen.numerics.drawing import ArrayLibrary
from gemmgen.numerics.formats import Real

WIDE, MIDDLE, ONE = 20, 10, 1
"""Bits of odd numbers that split into three bf16 terms, two, and one."""
_PAIRS = ((WIDE, ONE), (ONE, WIDE), (MIDDLE, MIDDLE)) * 2
"""Of A and of B, at six places along k: sums of their products are below 6 * 2^20."""


def widen(a: Real, b: Real, seed: int, on: ArrayLibrary) -> None:
    """Write odd integers of these widths to up to six columns of A and the same rows of B.

    A product of terms that is missing, computed twice, or of other terms changes the result."""
    rng, k = np.random.default_rng(seed), a.shape[-1]
    places = {number * k // len(_PAIRS): bits for number, bits in enumerate(_PAIRS)}
    for place, (of_a, of_b) in places.items():
        if place < k:
            for target, bits in ((a[..., :, place], of_a), (b[..., place, :], of_b)):
                target[...] = on.asarray(_odd(rng, bits, target.shape)).astype(target.dtype)


def _odd(rng: np.random.Generator, bits: int, shape: tuple[int, ...]) -> Real:
    """Odd integers of ``bits`` bits, with a random sign."""
    first = 1 << (bits - 1)
    magnitude = rng.integers(first, 2 * first, shape) | 1
    return (magnitude * rng.choice([-1, 1], shape)).astype(np.float64)
