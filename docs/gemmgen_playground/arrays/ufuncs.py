"""Functions of each element."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from .array import Op, broadcast_shapes, combined, kind_of, ndarray, spread
from .making import asarray, kind_of_all


class Elementwise:
    """A function of two values or arrays."""

    def __init__(self, op: Op, kind: type | None = None):
        self._op, self._kind = op, kind

    def __call__(self, left: Any, right: Any) -> Any:
        if isinstance(left, ndarray) or isinstance(right, ndarray):
            return combined(self._op, left, right, self._kind)
        return self._op(left, right)

    def at(self, target: ndarray, places: ndarray, values: ndarray) -> None:
        """Changes the element at each index, in order, and twice if the index occurs twice."""
        for place, value in zip(places.flat_list(), values.flat_list(), strict=True):
            target[place] = self._op(target[place], value)


add = Elementwise(operator.add)
multiply = Elementwise(operator.mul)
mod = Elementwise(operator.mod)
less = Elementwise(operator.lt, bool)
minimum = Elementwise(lambda a, b: b if b < a else a)
maximum = Elementwise(lambda a, b: b if b > a else a)
logical_and = Elementwise(lambda a, b: bool(a) and bool(b), bool)
logical_or = Elementwise(lambda a, b: bool(a) or bool(b), bool)


def _of_one(function: Callable[[Any], Any], kind: type | None) -> Callable[[Any], Any]:
    def run(value: Any) -> Any:
        if not isinstance(value, ndarray):
            return function(value)
        found = list(map(function, value.flat_list()))
        return ndarray(found, value.shape, kind or value.dtype)

    return run


abs = _of_one(operator.abs, None)
negative = _of_one(operator.neg, None)
logical_not = _of_one(operator.not_, bool)
isfinite = _of_one(math.isfinite, bool)
rint = _of_one(round, None)
exp, sqrt, tanh = (_of_one(f, float) for f in (math.exp, math.sqrt, math.tanh))


def divmod(values: Any, by: Any) -> tuple[Any, Any]:
    """Quotients and remainders."""
    return values // by, values % by


def clip(values: Any, low: Any, high: Any) -> Any:
    return minimum(maximum(values, low), high)


def where(condition: Any, yes: Any, no: Any) -> ndarray:
    """``yes`` where ``condition`` holds, else ``no``."""
    arrays = [asarray(x) for x in (condition, yes, no)]
    shape = broadcast_shapes(*(a.shape for a in arrays))
    chosen, first, second = (spread(a, shape) for a in arrays)
    found = [a if c else b for c, a, b in zip(chosen, first, second, strict=True)]
    return ndarray(found, shape, kind_of_all(arrays[1:]) if shape else kind_of(found))


@contextmanager
def errstate(**_: str) -> Generator[None]:
    """Nothing warns here."""
    yield


def vectorize(function: Callable[[Any], Any], **_: Any) -> Callable[[Any], Any]:
    """``function`` of each element."""
    return _of_one(function, None)
