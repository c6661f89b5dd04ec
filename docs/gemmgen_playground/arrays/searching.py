"""Functions that sort, search and count."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from .array import ndarray
from .making import asarray


def sort(values: ndarray, axis: int = -1) -> ndarray:
    found = values.copy()
    found.sort(axis)
    return found


def nonzero(values: ndarray) -> tuple[ndarray, ...]:
    return unravel_index(flatnonzero(values), values.shape)


def flatnonzero(values: Any) -> ndarray:
    found = [at for at, value in enumerate(asarray(values).flat_list()) if value]
    return ndarray(found, (len(found),), int)


def argwhere(values: ndarray) -> ndarray:
    columns = [axis.flat_list() for axis in nonzero(values)]
    rows = [x for row in zip(*columns, strict=True) for x in row]
    return ndarray(rows, (len(columns[0]), len(columns)), int)


def count_nonzero(values: Any) -> int:
    return sum(map(bool, asarray(values).flat_list()))


def argmax(values: ndarray) -> int:
    flat = values.flat_list()
    return flat.index(max(flat))


def argmin(values: ndarray) -> int:
    flat = values.flat_list()
    return flat.index(min(flat))


def unravel_index(at: Any, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """The index along each axis of flat places."""
    found: list[Any] = []
    for size in reversed(shape):
        found.append(at % size)
        at = at // size
    return tuple(reversed(found))


def ix_(rows: Any, columns: Any) -> tuple[ndarray, ndarray]:
    return asarray(rows).reshape(-1, 1), asarray(columns).reshape(1, -1)


def array_equal(one: Any, other: Any) -> bool:
    a, b = asarray(one), asarray(other)
    return a.shape == b.shape and a.flat_list() == b.flat_list()


def bincount(values: ndarray, minlength: int = 0) -> ndarray:
    flat = values.flat_list()
    found = [0] * max(minlength, max(flat, default=-1) + 1)
    for value in flat:
        found[value] += 1
    return ndarray(found, (len(found),), int)


def unique(
    values: Any,
    *,
    axis: int | None = None,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
) -> Any:
    """Different elements (rows, with ``axis=0``) in ascending order, and what is asked for."""
    found = asarray(values)
    assert axis in (None, 0), "elements, or rows"
    keys: list[Any] = found.flat_list() if axis is None else [*map(tuple, found.tolist())]
    order = sorted(range(len(keys)), key=keys.__getitem__)
    inverse, first, counts = [0] * len(keys), list[int](), list[int]()
    for number, (_, places) in enumerate(groupby(order, keys.__getitem__)):
        same = list(places)
        first.append(same[0])
        counts.append(len(same))
        for place in same:
            inverse[place] = number
    at = ndarray(first, (len(first),), int)
    different = found.reshape(-1)[at] if axis is None else found[at]
    more = [at] if return_index else []
    more += [ndarray(inverse, (len(inverse),), int)] if return_inverse else []
    more += [ndarray(counts, (len(counts),), int)] if return_counts else []
    return (different, *more) if more else different
