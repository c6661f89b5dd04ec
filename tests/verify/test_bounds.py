"""The bound for zero-mean halves on tensor cores: wide enough for their arithmetic, and no wider
than what a fault of a kernel shows.

Their arithmetic is modelled here as measured by Fasi, Higham, Mikaitis and Pranesh (2021) and, for
later ones, Li et al. (2024): of a few products at a time the exact values and the sum so far are
truncated, towards zero, at the last bit of the largest of them, or a few bits after it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from gemmgen.base.source import Source
from gemmgen.gpu.compare import contraction, rounding
from gemmgen.pipeline import compile_source

Numbers = npt.NDArray[np.float64]

ELEMENTS = 1_000
"""Of C, whose worst counts."""
GENERATIONS = {"sm_80": (8, 1), "sm_90": (16, 2)}
"""Products at a time, and bits after the last one."""
KERNEL = compile_source(Source("dtype A=f16 B=f16 C=f32\n"))
DEPTHS = (64, 1024, 4096)


def products(depth: int) -> Numbers:
    """The products of each element, of halves: exact in f64 and f32."""
    draw = np.random.default_rng(depth)
    a, b = (draw.standard_normal((ELEMENTS, depth), np.float32) for _ in range(2))
    return (a.astype(np.float16).astype(np.float32) * b.astype(np.float16)).astype(np.float64)


def cut(x: Numbers, places: int | Numbers) -> Numbers:
    """``x`` truncated towards zero to so many binary digits."""
    return np.ldexp(np.trunc(np.ldexp(x, places)), -np.asarray(places))


def exponent(x: Numbers) -> npt.NDArray[np.int32]:
    """Of the leading bit; small for 0."""
    return np.where(x == 0, -200, np.frexp(x)[1] - 1)


def on_tensor_cores(addends: Numbers, at_a_time: int, bits: int) -> Numbers:
    """The sums in f32 that tensor cores give."""
    total = np.zeros(len(addends))
    for first in range(0, addends.shape[1], at_a_time):
        row = np.column_stack((total, addends[:, first : first + at_a_time]))
        last = 23 + bits - exponent(np.abs(row).max(1))
        total = cut(row, last[:, None]).sum(1)
        total = cut(total, 23 - exponent(total))
    return total


def bound(addends: Numbers) -> Numbers:
    """As ``gemmgen verify`` has it for f32 results of halves."""
    values = {name: np.empty((1, addends.shape[1])) for name in "ABC"}
    share = rounding(contraction(KERNEL.interface), values, "normal")
    return share * np.abs(addends).sum(1)


@pytest.mark.by_default("64-*", "1024-*")
@pytest.mark.parametrize("generation", GENERATIONS)
@pytest.mark.parametrize("depth", (*DEPTHS, 16384))
def test_the_arithmetic_of_tensor_cores_stays_within(depth: int, generation: str) -> None:
    addends = products(depth)
    error = np.abs(on_tensor_cores(addends, *GENERATIONS[generation]) - addends.sum(1))
    share = float((error / bound(addends)).max())
    assert share < 0.6, "these are few elements: the worst of millions is not far below the bound"
    assert depth < 1024 or share > 0.1, "the bound has nothing to do with this arithmetic"


FAULTS = {
    "a term is missing": lambda addends: addends[:, :-1],
    "a term counts twice": lambda addends: np.column_stack((addends, addends[:, -1])),
    "a fragment's row is another's": lambda addends: np.column_stack(
        (np.roll(addends[:, :16], 1, axis=0), addends[:, 16:])
    ),
    "products are rounded to f16": lambda addends: addends.astype(np.float16).astype(np.float64),
    "operands lose a bit of their mantissas": lambda addends: cut(addends, 9 - exponent(addends)),
}


@pytest.mark.by_default("64-*", "1024-*")
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("depth", DEPTHS)
def test_a_fault_goes_beyond(depth: int, fault: str) -> None:
    addends = products(depth)
    wrong = on_tensor_cores(FAULTS[fault](addends), *GENERATIONS["sm_90"])
    beyond = np.abs(wrong - addends.sum(1)) > bound(addends)
    assert beyond.any()


def test_sums_kept_in_f16_go_beyond() -> None:
    addends = products(1024)
    total = np.zeros(ELEMENTS, np.float16)
    for first in range(0, 1024, 16):
        total = (total + addends[:, first : first + 16].sum(1)).astype(np.float16)
    assert (np.abs(total - addends.sum(1)) > bound(addends)).any()
