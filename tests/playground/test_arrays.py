"""The arrays that stand in for NumPy in the browser give NumPy's results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gemmgen_playground import arrays
from hypothesis import given, settings
from hypothesis import strategies as st

Library = Any
"""NumPy, or the stand-in."""

SHAPES = ((1,), (6,), (2, 3), (3, 1), (1, 4), (2, 3, 4), (2, 2, 2, 3))
NUMBERS = st.integers(-9, 9)


@st.composite
def given_arrays(draw: st.DrawFn, shape: tuple[int, ...] | None = None) -> Any:
    """Nested lists of one shape."""
    chosen = shape or draw(st.sampled_from(SHAPES))

    def nested(sizes: tuple[int, ...]) -> Any:
        return [nested(sizes[1:]) for _ in range(sizes[0])] if sizes else draw(NUMBERS)

    return nested(chosen)


def plain(result: Any) -> Any:
    """Values of either library, to be compared."""
    if isinstance(result, tuple | list):
        return [plain(part) for part in result]
    return result.tolist() if hasattr(result, "tolist") else result


def check(use: Callable[[Library, Any], Any], values: Any) -> None:
    """Both libraries give the same."""
    wanted = use(np, np.array(values, np.int64))
    assert plain(use(arrays, arrays.array(values, arrays.int64))) == plain(wanted)


ANY: dict[str, Callable[[Library, Any], Any]] = {
    "arithmetic": lambda n, a: [a + 3, 3 - a, a * a, a // 4, a % 4, -a, a / 2, a ^ 5, a << 1],
    "comparison": lambda n, a: [a > 0, a == a, a != 2, a >= 0, (a > 0) & (a < 5), ~(a > 0)],
    "in place": lambda n, a: [a.__iadd__(1), a.__imul__(2)],
    "reduction": lambda n, a: [a.sum(), a.max(), a.min(), (a > 0).any(), (a > 0).all()],
    "first axis": lambda n, a: [a.sum(axis=0), a.max(axis=0), (a > 0).any(axis=0)],
    "last axis": lambda n, a: [a.sum(axis=-1), a.max(axis=-1, initial=0)],
    "shape": lambda n, a: [a.reshape(-1), a.ravel(), a.copy(), a.size, a.shape, len(a)],
    "index": lambda n, a: [a[0], a[-1], a[None], a[0:2], a[::-1], a[a > 0]],
    "where": lambda n, a: [n.where(a > 0, a, -1), n.where(a > 0, 1, 0)],
    "clip": lambda n, a: [n.clip(a, -2, 3), n.minimum(a, 2), n.maximum(a, 2)],
    "search": lambda n, a: [n.flatnonzero(a > 0), n.argwhere(a > 0), n.nonzero(a > 0)],
    "extreme": lambda n, a: [int(n.argmax(a)), int(n.argmin(a)), int(n.count_nonzero(a))],
    "sort": lambda n, a: n.sort(a, axis=a.ndim - 1),
    "unique": lambda n, a: n.unique(a),
    "join": lambda n, a: [n.concatenate((a, a)), n.stack([a, a + 1])],
    "join along the last axis": lambda n, a: n.concatenate((a, a + 1), axis=a.ndim - 1),
    "repeat": lambda n, a: [n.repeat(a.reshape(-1), 3), n.tile(a.reshape(-1), 2)],
    "like": lambda n, a: [n.zeros_like(a), n.full_like(a, 7), n.ones(a.shape, n.int64)],
    "equal": lambda n, a: [n.array_equal(a, a), n.array_equal(a, a + 1)],
    "convert": lambda n, a: [a.astype(n.bool_), a.astype(n.float64), (a > 0).astype(n.int64)],
    "divmod": lambda n, a: list(n.divmod(a, 3)),
    "broadcast": lambda n, a: n.broadcast_to(a, (2, *a.shape)),
    "logic": lambda n, a: [n.logical_not(a > 0), n.logical_and(a > 0, a < 3)],
}


@pytest.mark.parametrize("name", ANY)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_of_any_shape(name: str, data: st.DataObject) -> None:
    check(ANY[name], data.draw(given_arrays()))


def _added(n: Library, a: Any) -> Any:
    counts = n.zeros(3, n.int64)
    n.add.at(counts, a[0] % 3, a[1])
    return counts


def _written(n: Library, a: Any) -> Any:
    a[:, 1:] = a[:, 1:] + a[:, :-1]
    a[0] = 4
    a[1, 2] = 9
    for row in a:
        row += 1
    return a


def _marked(n: Library, a: Any) -> Any:
    marks = a >= 0
    marks[:, 1:] &= a[:, 1:] != a[:, :-1]
    return marks


def _sorted(n: Library, a: Any) -> Any:
    a.sort(axis=1)
    return a


TABLES: dict[str, Callable[[Library, Any], Any]] = {
    "index": lambda n, a: [a[:, 1], a[1, 2], a[:, None], a[:, :, None], a[1:, :2], a.T],
    "lists of indices": lambda n, a: [a[[1, 0]], a[:, n.array([3, 0])], a[n.ix_([1], [0, 2])]],
    "pairs of indices": lambda n, a: a[n.array([0, 1, 1]), n.array([3, 0, 2])],
    "broadcasting": lambda n, a: [a + a[0], a[:, None] * a[:, :, None], a[:, :1] + a[0]],
    "unique rows": lambda n, a: list(n.unique(a // 4, axis=0, return_counts=True)),
    "unique and where": lambda n, a: list(
        n.unique(a[0] // 3, return_index=True, return_inverse=True, return_counts=True)
    ),
    "bincount": lambda n, a: [n.bincount(a[0] + 9, minlength=30), n.bincount(a[1] + 9)],
    "unravel": lambda n, a: list(n.unravel_index(a[0] + 9, (5, 4))),
    "products": lambda n, a: [a @ a[0], a.astype(object) @ a[1].astype(object)],
    "repeat each": lambda n, a: n.repeat(a[0], [2, 0, 1, 3]),
    "reductions": lambda n, a: [
        a.reshape(2, 2, 2).sum(axis=1),
        a.reshape(2, 2, 2).all(axis=(1, 2)),
    ],
    "added at places": _added,
    "written": _written,
    "marked": _marked,
    "sorted": _sorted,
}


@pytest.mark.parametrize("name", TABLES)
@settings(max_examples=15, deadline=None)
@given(values=given_arrays(shape=(2, 4)))
def test_of_a_table(name: str, values: Any) -> None:
    check(TABLES[name], values)


def test_a_view_of_the_first_axis_shares_memory_and_other_indices_do_not() -> None:
    for library in (np, arrays):
        values = library.arange(12).reshape(3, 4)
        values[1][0] = 100
        values[:, 1:3].copy()[0] = 5
        assert values[1].base is not None and values.copy().base is None
        assert values.tolist() == [[0, 1, 2, 3], [100, 5, 6, 7], [8, 9, 10, 11]]


def test_integers_do_not_wrap_around() -> None:
    large = arrays.array([1 << 62]) * 8
    assert large.tolist() == [1 << 65]


def test_what_is_missing_is_named() -> None:
    with pytest.raises(AttributeError, match="einsum"):
        _ = arrays.einsum
