"""A model of the accumulators of tensor cores, as measured by Fasi, Higham, Mikaitis and Pranesh
(2021) and for later ones by Li et al. (2024).

Of a few products at a time the exact values and the sum so far are truncated, towards zero, at the
last bit of the largest of them, or a few bits after it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]

GENERATIONS = {"sm_80": (8, 1), "sm_90": (16, 2)}
"""Products that are added at a time, and the bits kept after the last one."""
BYTES = (32, 0, 13)
"""The same of FP8 on Hopper's wgmma, and the bits after the leading one that accumulators keep."""


def cut(x: Numbers, places: int | npt.NDArray[np.int32]) -> Numbers:
    """``x`` truncated towards zero to ``places`` binary digits."""
    return np.ldexp(np.trunc(np.ldexp(x, places)), -np.asarray(places))


def exponent(x: Numbers) -> npt.NDArray[np.int32]:
    """The exponent of the leading bit; a small number for 0."""
    return np.where(x == 0, -200, np.frexp(x)[1] - 1)


def on_tensor_cores(addends: Numbers, at_a_time: int, bits: int, fraction: int = 23) -> Numbers:
    """What tensor cores accumulate, with ``fraction`` bits after the leading one: f32 has 23."""
    total = np.zeros(len(addends))
    for first in range(0, addends.shape[1], at_a_time):
        row = np.column_stack((total, addends[:, first : first + at_a_time]))
        last = fraction + bits - exponent(np.abs(row).max(1))
        total = cut(row, last[:, None]).sum(1)
        total = cut(total, fraction - exponent(total))
    return total
