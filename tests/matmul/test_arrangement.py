"""Which letters a product's dimensions get, and which of them become one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gemmgen.calling.arguments import View
from gemmgen.functions.arrangement import Arrangement, arranged, check_shapes, result_shape
from gemmgen.functions.direct import _reshaped

NONE = frozenset[str]()


def in_elements(array: np.ndarray) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return array.shape, tuple(stride // array.itemsize for stride in array.strides)


def line(a: np.ndarray, b: np.ndarray, used: frozenset[str] = NONE) -> str:
    found = arranged(in_elements(a), in_elements(b), None, used)
    c, left, right = (" ".join(found.letters[role]) for role in (2, 0, 1))
    return f"{c} = {left} * {right}"


def zeros(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.float32)


@pytest.mark.parametrize(
    ("a", "b", "found"),
    [
        ((3, 4), (4, 5), "m n = m k * k n"),
        ((3, 4), (4,), "m n = m k * n k"),
        ((3, 4), (4, 1), "m n = m k * n k"),
        ((4,), (4, 5), "m n = m k * k n"),
        ((2, 3, 4), (4, 5), "m n = m k * k n"),  # the batches of A are rows
        ((6, 2, 3, 4), (4, 5), "m n = m k * k n"),
        ((2, 3, 4), (2, 4, 5), "b1 m n = b1 m k * b1 k n"),
        ((6, 2, 3, 4), (6, 2, 4, 5), "b2 m n = b2 m k * b2 k n"),
        ((6, 2, 3, 4), (2, 4, 5), "b1 b2 m n = b1 b2 m k * b2 k n"),
        ((6, 1, 3, 4), (2, 4, 5), "b1 b2 m n = b1 m k * b2 k n"),
        ((3, 4), (2, 4, 5), "b1 m n = m k * b1 k n"),
        ((1, 3, 4), (1, 4, 5), "m n = m k * k n"),
    ],
)
def test_letters(a: tuple[int, ...], b: tuple[int, ...], found: str) -> None:
    assert line(zeros(*a), zeros(*b)) == found


def test_dimensions_that_are_not_adjacent_stay_apart() -> None:
    heads = zeros(2, 5, 3, 4).transpose(0, 2, 1, 3)
    transposed = heads.swapaxes(-1, -2)
    assert line(heads, transposed) == "b1 b2 m n = b1 b2 m k * b1 b2 k n"
    assert line(zeros(4, 3, 4)[::2], zeros(4, 5)) == "b1 m n = b1 m k * k n"
    assert line(zeros(2, 6, 4)[:, ::2], zeros(4, 5)) == "m n = m k * k n", "rows are evenly apart"
    one = np.broadcast_to(zeros(3, 4), (2, 3, 4))
    assert line(one, zeros(4, 5)) == "b1 m n = b1 m k * k n"


def test_letters_that_an_epilogue_reads_stay() -> None:
    a, b = zeros(2, 3, 4), zeros(4, 5)
    assert line(a, b, frozenset({"m"})) == "b1 m n = b1 m k * k n"
    assert line(a, b, frozenset({"b1"})) == "b1 m n = b1 m k * k n"
    assert line(zeros(1, 3, 4), b, frozenset({"b1"})) == "b1 m n = b1 m k * b1 k n"


def test_an_out_keeps_dimensions_apart_too() -> None:
    a, b, out = (in_elements(x) for x in (zeros(2, 3, 4), zeros(4, 5), zeros(4, 3, 5)[::2]))
    assert arranged(a, b, out, NONE).letters[2] == ("b1", "m", "n")


SIZES = st.sampled_from((0, 1, 1, 2, 3))


@st.composite
def operands(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Two arrays that can be multiplied, of any strides."""
    m, n, k = (draw(SIZES) for _ in "mnk")
    outer = draw(st.lists(SIZES, max_size=4))
    shapes: list[tuple[int, ...]] = []
    for inner in ((m, k), (k, n)):
        kept = outer[draw(st.integers(0, len(outer))) :]
        shapes.append((*(1 if draw(st.booleans()) else size for size in kept), *inner))
    if draw(st.booleans()) and len(shapes[0]) == 2:
        shapes[0] = (k,)
    if draw(st.booleans()) and len(shapes[1]) == 2:
        shapes[1] = (k,)
    arrays: list[np.ndarray] = []
    for shape in shapes:
        order = draw(st.permutations(range(len(shape))))
        steps = [draw(st.sampled_from((1, 1, 2, -1))) for _ in shape]
        wide = [size * abs(step) for size, step in zip(shape, steps, strict=True)]
        array = np.arange(np.prod([wide[i] for i in order]), dtype=np.float64)
        array = array.reshape([wide[i] for i in order]).transpose(np.argsort(order))
        arrays.append(array[tuple(slice(None, None, step) for step in steps)])
    return arrays[0], arrays[1]


@given(operands())
def test_arrays_become_the_gemm_lines_tensors_without_copies(
    pair: tuple[np.ndarray, np.ndarray],
) -> None:
    a, b = pair
    check_shapes(a.shape, b.shape)
    wanted = a @ b
    assert result_shape(a.shape, b.shape) == np.shape(wanted)
    found: Arrangement = arranged(in_elements(a), in_elements(b), None, NONE)
    left, right = a.reshape(found.shapes[0]), b.reshape(found.shapes[1])
    for array, whole in ((left, a), (right, b)):
        assert not array.size or np.shares_memory(array, whole)
        view = _reshaped(View(0, *in_elements(whole)), array.shape)
        assert view.shape == array.shape
        strides = zip(view.shape, view.strides, in_elements(array)[1], strict=True)
        assert not array.size or all(step == own for size, step, own in strides if size > 1)
    names = {x: chr(ord("a") + at) for at, x in enumerate(("k", *found.letters[2]))}
    said = ("".join(names[x] for x in each) for each in found.letters)
    c = np.einsum("{},{}->{}".format(*said), left, right)
    assert c.shape == found.shapes[2]
    np.testing.assert_array_equal(c.reshape(found.result), wanted)
