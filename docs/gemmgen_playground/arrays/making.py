"""Functions that make arrays."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from math import prod
from typing import Any

from .array import Shape, dtype, kind_of, ndarray, nested, spread


def array(values: Any, kind: Any = None) -> ndarray:
    flat, shape = nested(values)
    found = ndarray(flat, shape, kind_of(flat))
    return found if kind is None else found.astype(kind)


def asarray(values: Any, kind: Any = None) -> ndarray:
    if isinstance(values, ndarray) and (kind is None or dtype(kind) is values.dtype):
        return values
    return array(values, kind)


ascontiguousarray = asarray


def arange(*bounds: Any, dtype: Any = None) -> ndarray:
    found = list(range(*(int(b) for b in bounds)))
    return ndarray(found, (len(found),), int)


def full(shape: Any, value: Any, kind: Any = None) -> ndarray:
    to = kind_of([value]) if kind is None else dtype(kind)
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    return ndarray([value if to is object else to(value)] * prod(sizes), sizes, to)


def zeros(shape: Any, dtype: Any = float) -> ndarray:
    return full(shape, 0, dtype)


empty = zeros


def ones(shape: Any, dtype: Any = float) -> ndarray:
    return full(shape, 1, dtype)


def full_like(other: ndarray, value: Any) -> ndarray:
    return full(other.shape, value, other.dtype)


def zeros_like(other: ndarray) -> ndarray:
    return full_like(other, 0)


def broadcast_to(values: Any, shape: int | Shape) -> ndarray:
    """A copy: what NumPy gives can't be written either."""
    found = asarray(values)
    to = (shape,) if isinstance(shape, int) else tuple(shape)
    return ndarray(list(spread(found, to)), to, found.dtype)


def concatenate(arrays: Sequence[Any], axis: int = 0) -> ndarray:
    """Arrays joined along an axis."""
    found = [asarray(a) for a in arrays]
    first = found[0].shape
    if axis == 0:
        flat = list(chain.from_iterable(a.flat_list() for a in found))
        return ndarray(flat, (sum(a.shape[0] for a in found), *first[1:]), kind_of_all(found))
    at = axis % len(first)
    rows = prod(first[:at])
    lists = [(a.flat_list(), prod(a.shape[at:])) for a in found]
    flat = [x for row in range(rows) for data, n in lists for x in data[row * n : row * n + n]]
    along = sum(a.shape[at] for a in found)
    return ndarray(flat, (*first[:at], along, *first[at + 1 :]), kind_of_all(found))


def stack(arrays: Sequence[Any]) -> ndarray:
    """Arrays of one shape under a new first axis."""
    found = [asarray(a) for a in arrays]
    flat = list(chain.from_iterable(a.flat_list() for a in found))
    return ndarray(flat, (len(found), *found[0].shape), kind_of_all(found))


def kind_of_all(arrays: Sequence[ndarray]) -> type:
    kinds = {a.dtype for a in arrays}
    return next(k for k in (object, float, int, bool) if k in kinds)


def repeat(values: Any, times: Any) -> ndarray:
    """Each element of a flat array this many times."""
    found = asarray(values).reshape(-1)
    if isinstance(times, int):
        flat = [x for x in found.flat_list() for _ in range(times)]
    else:
        flat = [x for x, n in zip(found.flat_list(), times, strict=True) for _ in range(n)]
    return ndarray(flat, (len(flat),), found.dtype)


def tile(values: Any, times: int) -> ndarray:
    """A flat array, ``times`` times one after the other."""
    found = asarray(values)
    return ndarray(found.flat_list() * times, (found.size * times,), found.dtype)
