"""Equal summation orders give equal bits: emitted texts run on the CPU, and what the value says."""

from __future__ import annotations

from itertools import combinations

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

import gemmgen
from summation.bits_of_value import accumulators
from summation.schedules import EQUAL, compiled, order_of

DEPTHS = (1, 40, 264)
"""K: fewer than a tile, and ragged ones of several."""
ROWS, COLUMNS = 9, 5
FEW = ("one fmaf per k", "slices of 8", "mma.sync, promoted")
"""By default one form of each mechanism: fmaf, slices, tensor cores with partial accumulators."""

Numbers = npt.NDArray[np.float32]


def operands(text: str, depth: int, rows: int = ROWS) -> tuple[Numbers, Numbers]:
    """Random A and B, whose first rows are the same for any number of them."""
    dice = np.random.default_rng(depth)
    b, a = (dice.standard_normal((size, depth)) for size in (COLUMNS, rows))
    if "bf16 B" in text:
        a, b = (x.astype(ml_dtypes.bfloat16) for x in (a, b))
    return a.astype(np.float32), b.astype(np.float32)


def result(text: str, depth: int, rows: int = ROWS) -> Numbers:
    """C as the CPU's run of the emitted text has it."""
    a, b = operands(text, depth, rows)
    stored = ml_dtypes.bfloat16 if "bf16 B" in text else np.float32
    kernel = gemmgen.compile(text, device="cpu")
    return np.asarray(kernel(A=padded(a.astype(stored)), B=padded(b.astype(stored))))


def padded(matrix: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    """The same with rows that begin at multiples of 64 bytes, as wide accesses need."""
    rows, columns = matrix.shape
    memory = np.zeros((rows, -(-columns // 32) * 32), matrix.dtype)
    memory[:, :columns] = matrix
    return memory[:, :columns]


@pytest.mark.proof
@pytest.mark.parametrize("name", EQUAL)
def test_equal_orders_give_equal_bits_which_are_those_of_the_value(name: str) -> None:
    first, *others = EQUAL[name]
    for depth in DEPTHS:
        if "assume" in first and depth % 8:
            continue
        bits = result(first, depth).view(np.uint32)
        a, b = operands(first, depth)
        stated = accumulators(order_of(first), a, np.ascontiguousarray(b.T), compiled(first).target)
        assert (stated.view(np.uint32) == bits).all(), "the value states other bits"
        for text in others:
            assert (result(text, depth).view(np.uint32) == bits).all(), text


@pytest.mark.by_default("*one fmaf*slices of 8*", "*two slices*slices in groups*")
@pytest.mark.parametrize(
    "names",
    [
        pytest.param(pair, id=" / ".join(pair))
        for pair in combinations([x for x in EQUAL if EQUAL[x][0].startswith("gemm C")], 2)
        if len({"bf16 B" in EQUAL[x][0] for x in pair}) == 1
    ],
)
def test_other_orders_give_other_bits(names: tuple[str, str]) -> None:
    """Also ``mma.sync`` of sm_80, whose groups have 8 products, and ``wgmma``, of 16."""
    first, second = (EQUAL[name][0] for name in names)
    assert order_of(first) != order_of(second)
    differing = result(first, 264) != result(second, 264)
    assert differing.any()


@pytest.mark.by_default("one fmaf*")
@pytest.mark.parametrize("name", EQUAL)
def test_rows_have_their_bits_for_any_number_of_rows(name: str) -> None:
    """What the value says of every order here: it depends on K alone."""
    text = EQUAL[name][0]
    assert not order_of(text).varies_with("m")
    whole = result(text, 264, 40)
    for rows in (1, 7, 33):
        assert (result(text, 264, rows).view(np.uint32) == whole[:rows].view(np.uint32)).all()
