"""The array: a flat list, a shape, and the place where a view begins."""

from __future__ import annotations

import operator
from array import array as words
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import chain, compress, product, repeat
from math import prod
from operator import itemgetter
from typing import Any


class generic:
    """What NumPy's scalars are; here they are Python's own, so nothing is an instance."""


class integer(generic):
    """NumPy's integers."""


class floating(generic):
    """NumPy's floats."""


class int64(int):
    """The kind of all integers, whatever width they are asked for with."""


class float64(float):
    """The kind of all floats."""


class float32(float64):
    """Kept without rounding: counts have none of a kernel's floats."""


int8 = int32 = intp = uint8 = uint16 = uint32 = uint64 = int64
float16 = float32
bool_ = bool


def dtype(kind: Any) -> type:
    """The kind of elements: ``bool``, ``int``, ``float`` or ``object``; of names, of any width,
    ``int`` or ``float``."""
    if isinstance(kind, str):
        return float if kind.startswith("f") else int
    if kind is None:
        return object
    return next((known for known in (bool, int, float) if issubclass(kind, known)), object)


Shape = tuple[int, ...]
Op = Callable[[Any, Any], Any]


class ndarray:
    """Elements in row-major order: ``shape``'s product of them, from ``_start`` in ``_data``."""

    __slots__ = ("_data", "_start", "base", "dtype", "shape")
    __hash__ = None  # type: ignore[assignment]  # as NumPy's: == gives an array

    def __init__(
        self,
        data: list[Any],
        shape: Shape,
        kind: type,
        start: int = 0,
        base: ndarray | None = None,
    ):
        self._data, self.shape, self.dtype, self._start = data, shape, kind, start
        self.base = base  # the array that this is a view of

    @classmethod
    def __class_getitem__(cls, _: object) -> type[ndarray]:
        return cls

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def T(self) -> ndarray:
        rows, columns = self.shape
        flat = self.flat_list()
        found = list(chain.from_iterable(flat[c::columns] for c in range(columns)))
        return ndarray(found, (columns, rows), self.dtype)

    def flat_list(self) -> list[Any]:
        """The elements; not to be changed."""
        size = prod(self.shape)
        if self._start == 0 and len(self._data) == size:
            return self._data
        return self._data[self._start : self._start + size]

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        if len(self.shape) == 1:
            return iter(self.flat_list())
        return (self._part(at) for at in range(self.shape[0]))

    def _part(self, at: int) -> ndarray:
        rest = self.shape[1:]
        return ndarray(self._data, rest, self.dtype, self._start + at * prod(rest), self)

    def __bool__(self) -> bool:
        assert self.size == 1, "the truth value of an array of several elements"
        return bool(self.flat_list()[0])

    def __int__(self) -> int:
        (only,) = self.flat_list()
        return int(only)

    __index__ = __int__

    def __float__(self) -> float:
        (only,) = self.flat_list()
        return float(only)

    def __repr__(self) -> str:
        return f"array({self.tolist()})"

    def tolist(self) -> Any:
        flat = list(self.flat_list())
        for size in reversed(self.shape[1:]):
            flat = [flat[at : at + size] for at in range(0, len(flat), size)] if size else []
        return flat if self.shape else flat[0]

    def tobytes(self) -> bytes:
        """As NumPy's of integers and truth values, in 8 bytes each."""
        return words("q", self.flat_list()).tobytes()

    def copy(self) -> ndarray:
        return ndarray(list(self.flat_list()), self.shape, self.dtype)

    def astype(self, kind: Any, copy: bool = True) -> ndarray:
        to = dtype(kind)
        flat = self.flat_list()
        found = list(flat) if to in (self.dtype, object) else list(map(to, flat))
        return ndarray(found, self.shape, to)

    def reshape(self, *sizes: Any) -> ndarray:
        shape = tuple(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], tuple) else sizes
        if -1 in shape:
            known = -prod(shape)
            shape = tuple(self.size // known if s == -1 else s for s in shape)
        assert prod(shape) == self.size, f"{self.shape} has no shape {shape}"
        return ndarray(self._data, shape, self.dtype, self._start, self)

    def ravel(self) -> ndarray:
        return self.reshape(-1)

    # Indices

    def __getitem__(self, key: Any) -> Any:
        if not self.shape and key == ():
            return self.flat_list()[0]
        if isinstance(key, int):
            at = key + self.shape[0] if key < 0 else key
            if not 0 <= at < self.shape[0]:
                raise IndexError(f"index {key} of {self.shape[0]} elements")
            return self._data[self._start + at] if len(self.shape) == 1 else self._part(at)
        if isinstance(key, slice):
            places = range(*key.indices(self.shape[0]))
            rest = self.shape[1:]
            if places.step == 1:
                start = self._start + places.start * prod(rest)
                return ndarray(self._data, (len(places), *rest), self.dtype, start, self)
        flat = self.flat_list()
        if isinstance(key, ndarray) and key.dtype is bool and key.shape == self.shape:
            taken = list(compress(flat, key.flat_list()))
            return ndarray(taken, (len(taken),), self.dtype)
        shape, places = _places(self.shape, key)
        if shape is None:
            return flat[places[0]]
        return ndarray(gathered(flat, places), shape, self.dtype)

    def __setitem__(self, key: Any, value: Any) -> None:
        shape, places = _places(self.shape, key)
        kind = self.dtype
        values = (
            spread(value, shape or ()) if isinstance(value, ndarray) else repeat(value, len(places))
        )
        data, start = self._data, self._start
        for place, each in zip(places, values, strict=True):
            data[start + place] = each if kind is object else kind(each)

    # Reductions

    def reduced(self, fold: Callable[[list[Any]], Any], axis: Any, kind: type) -> Any:
        """``fold`` of the elements along ``axis`` (None: of all)."""
        flat = self.flat_list()
        if axis is None:
            return fold(flat)
        axes = (axis,) if isinstance(axis, int) else tuple(axis)
        axes = tuple(a % len(self.shape) for a in axes)
        first = min(axes)
        assert sorted(axes) == list(range(first, first + len(axes))), "axes side by side"
        before, along = self.shape[:first], prod(self.shape[first : first + len(axes)])
        after = self.shape[first + len(axes) :]
        step, found = prod(after), []
        for at in range(0, prod(before) * along * step, along * step or 1):
            if step == 1:
                found.append(fold(flat[at : at + along]))
            else:
                found += [fold(flat[at + i : at + along * step : step]) for i in range(step)]
        if not along:
            found = [fold([]) for _ in range(prod(before) * step)]
        return ndarray(found, before + after, kind) if before + after else found[0]

    def sum(self, axis: Any = None) -> Any:
        return self.reduced(sum, axis, float if self.dtype is float else int)

    def any(self, axis: Any = None) -> Any:
        return self.reduced(any, axis, bool)

    def all(self, axis: Any = None) -> Any:
        return self.reduced(all, axis, bool)

    def max(self, axis: Any = None, initial: Any = None) -> Any:
        return self.reduced(_extreme(max, initial), axis, self.dtype)

    def min(self, axis: Any = None, initial: Any = None) -> Any:
        return self.reduced(_extreme(min, initial), axis, self.dtype)

    def sort(self, axis: int = -1) -> None:
        """Sorts each row of the last axis in place."""
        assert axis % len(self.shape) == len(self.shape) - 1, "sorted along the last axis"
        width, begin = self.shape[-1], self._start
        for at in range(begin, begin + self.size, width or 1):
            self._data[at : at + width] = sorted(self._data[at : at + width])

    # Arithmetic

    def __matmul__(self, other: ndarray) -> Any:
        weights = other.flat_list()
        assert len(other.shape) == 1, "a product with a vector"

        def weighted(row: list[Any]) -> Any:
            return sum(map(operator.mul, row, weights))

        return self.reduced(weighted, -1, self.dtype)

    def __invert__(self) -> ndarray:
        flip = operator.not_ if self.dtype is bool else operator.invert
        return ndarray(list(map(flip, self.flat_list())), self.shape, self.dtype)

    def __neg__(self) -> ndarray:
        return ndarray(list(map(operator.neg, self.flat_list())), self.shape, self.dtype)

    def __divmod__(self, other: Any) -> tuple[ndarray, ndarray]:
        return self // other, self % other


def _extreme(pick: Callable[..., Any], initial: Any) -> Callable[[list[Any]], Any]:
    if initial is None:
        return pick
    return lambda values: pick(chain((initial,), values))


def combined(op: Op, left: Any, right: Any, kind: type | None = None) -> Any:
    """``op`` of each pair of elements; ``kind`` is that of the result, None: the operands'."""
    arrays = [x for x in (left, right) if isinstance(x, ndarray)]
    if kind is None:
        kinds = [x.dtype if isinstance(x, ndarray) else dtype(type(x)) for x in (left, right)]
        kind = next(k for k in (object, float, int, bool) if k in kinds)
    if len(arrays) == 1 or left.shape == right.shape:
        shape = arrays[0].shape
    else:
        shape = broadcast_shapes(left.shape, right.shape)
    sides = (spread(x, shape) if isinstance(x, ndarray) else repeat(x) for x in (left, right))
    return ndarray(list(map(op, *sides)), shape, kind)


def spread(array: ndarray, shape: Shape) -> list[Any]:
    """The elements of ``array`` broadcast to ``shape``; not to be changed."""
    flat = array.flat_list()
    return flat if array.shape == shape else gathered(flat, _broadcast(array.shape, shape))


def gathered(flat: list[Any], places: list[int]) -> list[Any]:
    if len(places) < 2:
        return [flat[at] for at in places]
    return list(itemgetter(*places)(flat))


def broadcast_shapes(*shapes: Shape) -> Shape:
    """The shape to which all are broadcast."""
    most = max(map(len, shapes))
    filled = [(1,) * (most - len(shape)) + tuple(shape) for shape in shapes]
    found: list[int] = []
    for sizes in zip(*filled, strict=True):
        others = {size for size in sizes if size != 1}
        assert len(others) <= 1, f"{shapes} can't be broadcast together"
        found.append(others.pop() if others else 1)
    return tuple(found)


@lru_cache(maxsize=256)
def _broadcast(shape: Shape, to: Shape) -> list[int]:
    """The place of each element of ``to`` in an array of ``shape``."""
    own = (1,) * (len(to) - len(shape)) + shape
    places, step = [0], 1
    for size, wide in zip(reversed(own), reversed(to), strict=True):
        steps = [at * step for at in range(size)] if size == wide else [0] * wide
        places = [base + place for base in steps for place in places]
        step *= size
    return places


def _places(shape: Shape, key: Any) -> tuple[Shape | None, list[int]]:
    """The shape that an index gives (None: an element), and the places of its elements."""
    keys = key if isinstance(key, tuple) else (key,)
    if any(isinstance(k, ndarray | list) for k in keys):
        return _chosen(shape, keys)
    plain = tuple((k.start, k.stop, k.step) if isinstance(k, slice) else k for k in keys)
    return _sliced(shape, plain)


@lru_cache(maxsize=1024)
def _sliced(shape: Shape, keys: tuple[Any, ...]) -> tuple[Shape | None, list[int]]:
    found: list[int] = []
    steps: list[list[int]] = []
    axis = 0
    for key in (*keys, *[(None, None, None)] * (len(shape) - sum(k is not None for k in keys))):
        if key is None:
            found.append(1)
            continue
        apart = prod(shape[axis + 1 :])
        if isinstance(key, tuple):
            along = range(*slice(*key).indices(shape[axis]))
            found.append(len(along))
            steps.append([at * apart for at in along])
        else:
            steps.append([range(shape[axis])[key] * apart])
        axis += 1
    places = [sum(each) for each in product(*steps)]
    is_element = len(keys) == len(shape) and all(isinstance(k, int) for k in keys)
    return (None if is_element else tuple(found)), places


def _chosen(shape: Shape, keys: tuple[Any, ...]) -> tuple[Shape, list[int]]:
    """With arrays of indices, or a mask of truth values."""
    first, *others = keys
    if isinstance(first, ndarray) and first.dtype is bool:
        assert not others, "a mask alone"
        rest = prod(shape[len(first.shape) :])
        rows = [at for at, taken in enumerate(first.flat_list()) if taken]
        places = [row * rest + at for row in rows for at in range(rest)]
        return (len(rows), *shape[len(first.shape) :]), places
    # Whole axes in front of the arrays stay; the arrays' shape replaces their axes.
    front = 0
    while isinstance(keys[front], slice):
        assert keys[front] == slice(None), "a whole axis beside an array of indices"
        front += 1
    arrays = [_indices(key) for key in keys[front:]]
    to = broadcast_shapes(*(a.shape for a in arrays))
    rest = shape[front + len(arrays) :]
    flats: list[int] = [0] * prod(to)
    for axis, each in enumerate(arrays):
        at = front + axis
        apart, size = prod(shape[at + 1 :]), shape[at]
        index = [range(size)[i] * apart for i in spread(each, to)]
        flats = list(map(operator.add, flats, index))
    block = prod(shape[front:])
    after = range(prod(rest))
    places = [
        base * block + place + more
        for base in range(prod(shape[:front]))
        for place in flats
        for more in after
    ]
    return (*shape[:front], *to, *rest), places


def _indices(key: Any) -> ndarray:
    if isinstance(key, ndarray):
        return key
    if isinstance(key, list):
        return ndarray(key, (len(key),), int)
    return ndarray([key], (), int)


def nested(values: Any) -> tuple[list[Any], Shape]:
    """The elements of nested sequences, and their shape."""
    if isinstance(values, ndarray):
        return list(values.flat_list()), values.shape
    if isinstance(values, range | tuple | list):
        if not len(values):
            return [], (0,)
        parts = [nested(value) for value in values]
        return list(chain.from_iterable(flat for flat, _ in parts)), (len(parts), *parts[0][1])
    return [values], ()


def kind_of(values: Iterable[Any]) -> type:
    """The kind that holds all of ``values``."""
    kinds = {dtype(type(value)) for value in values} or {float}
    return next(k for k in (object, float, int, bool) if k in kinds)


_ARITHMETIC: dict[str, Op] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "lshift": operator.lshift,
    "rshift": operator.rshift,
}


def _install() -> None:
    """Gives the array its operators."""

    def forward(op: Op, kind: type | None) -> Op:
        return lambda self, other: combined(op, self, other, kind)

    def backward(op: Op, kind: type | None) -> Op:
        return lambda self, other: combined(op, other, self, kind)

    def in_place(op: Op) -> Op:
        def run(self: ndarray, other: Any) -> ndarray:
            found = combined(op, self, other).flat_list()
            self._data[self._start : self._start + len(found)] = found
            return self

        return run

    for name, op in _ARITHMETIC.items():
        setattr(ndarray, f"__{name}__", forward(op, None))
        setattr(ndarray, f"__r{name}__", backward(op, None))
        setattr(ndarray, f"__i{name}__", in_place(op))
    ndarray.__truediv__ = forward(operator.truediv, float)  # type: ignore[attr-defined]
    ndarray.__rtruediv__ = backward(operator.truediv, float)  # type: ignore[attr-defined]
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        setattr(ndarray, f"__{name}__", forward(getattr(operator, name), bool))


_install()
