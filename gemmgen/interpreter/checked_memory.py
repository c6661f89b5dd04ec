"""Memories that hold elements: flat, poisoned, and every access checked."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import cast

import numpy as np
import numpy.typing as npt

from gemmgen.interpreter.memory import Memory
from gemmgen.interpreter.simt import Index, Lanes, Mask, Trap, where
from gemmgen.ir.dtypes import BYTES, INTEGERS, RAW, DType
from gemmgen.numerics.formats import STORAGE, poison
from gemmgen.numerics.operators import COMPARE, Bools, Ints, Value

F32 = npt.NDArray[np.float32]
Elements = npt.NDArray[np.float32 | np.float64 | np.uint16 | np.uint8]
"""What memories hold: numbers, or the raw bits of f16 and bf16.  Integers are held as f64, so that
there is a NaN among them: what was never written is not an integer."""

less = COMPARE["<"]


@cache
def poison_of(kind: type[np.generic]) -> np.generic:
    """A NaN as an element of each type; the bits are one of each type that they may be."""
    if kind is np.uint16 or kind is np.uint8:
        return kind(0x7FFF if kind is np.uint16 else 0x7F)
    return kind(poison(1)[0])


def elements(dtype: DType) -> np.dtype[np.generic]:
    """What a memory of ``dtype`` is made of."""
    if dtype in INTEGERS:
        return np.dtype(np.float64)
    return np.dtype(f"u{BYTES[dtype]}") if dtype in RAW else STORAGE[dtype]


def poisoned(count: int | tuple[int, ...], dtype: DType) -> Elements:
    """Elements that were never written."""
    kind = elements(dtype)
    return cast(Elements, np.full(count, poison_of(kind.type), kind))


class CheckedMemory(Memory):
    """Memory in which each lane may access ``size`` elements."""

    def __init__(self, name: str, dtype: DType, size: int, lanes: Lanes):
        super().__init__(name, dtype)
        self.size, self.lanes = size, lanes
        self._outside = f"out of bounds of {size} elements"

    def read(
        self, index: Index, width: int, mask: Mask, valid: Value | None = None
    ) -> Sequence[Value]:
        self.check_aligned(index, width, mask)
        if valid is None:
            return [self.load(index + e, mask) for e in range(width)]
        return [self._first_of(valid, index, e, mask) for e in range(width)]

    def _first_of(self, valid: Value, index: Index, e: int, mask: Mask) -> Value:
        """The ``e``-th element from ``index`` on, zero in lanes that have fewer."""
        value = np.zeros(self.lanes.count, elements(self.dtype))
        some, there = where(less(e, valid), mask)
        if some:
            value = np.where(True if there is None else there, self.load(index + e, there), value)
        return cast(Value, value)

    def write(self, index: Index, values: Sequence[Value], mask: Mask) -> None:
        self.check_aligned(index, len(values), mask)
        for e, value in enumerate(values):
            self.store(index + e, value, mask)

    def check_aligned(self, index: Index, width: int, mask: Mask) -> None:
        """A wide access starts at a multiple of its width."""
        if not isinstance(index, int) or index % width:
            at = self.active(index, mask)
            self.refuse(at % width != 0, at, mask, f"misaligned access of width {width}")

    def check(self, index: Index, mask: Mask) -> None:
        """``index`` (of the lanes in ``mask`` alone) lies inside."""
        if not isinstance(index, int):
            # Negative numbers are large ones when read as unsigned.
            self.refuse(index.view(np.uint64) >= self.size, index, mask, self._outside)
        elif not 0 <= index < self.size:
            raise self.trap(_lane(0, mask), index, self._outside)

    def active(self, index: Index, mask: Mask) -> Ints:
        """``index`` of the lanes in ``mask`` alone."""
        every = self.lanes.every(index)
        return every if mask is None else every[mask]

    def refuse(self, wrong: Bools, index: Ints, mask: Mask, description: str) -> None:
        """Raises ``Trap`` for the first that is ``wrong``, if any; as ``index``, it has the lanes
        in ``mask`` alone."""
        if wrong.any():
            at = int(np.argmax(wrong))
            raise self.trap(_lane(at, mask), int(index[at]), description)

    def trap(self, lane: int, index: int, description: str) -> Trap:
        return Trap(self.name, self.lanes.name(lane), index, description)


def _lane(at: int, mask: Mask) -> int:
    """The number of the ``at``-th lane in ``mask``."""
    return at if mask is None else int(np.flatnonzero(mask)[at])


class FlatMemory(CheckedMemory):
    """Global memory, or the shared arrays of blocks side by side (``per_block``), each ``aligned``
    to this many bytes."""

    def __init__(
        self,
        name: str,
        dtype: DType,
        data: Elements,
        lanes: Lanes,
        *,
        per_block: bool = False,
        aligned: int = 0,
    ):
        super().__init__(name, dtype, data.size // lanes.blocks if per_block else data.size, lanes)
        self.data = data
        self.aligned = aligned
        numbers = np.repeat(np.arange(lanes.blocks), lanes.threads)
        self.base = numbers * self.size if per_block and lanes.blocks > 1 else None

    def load(self, index: Index, mask: Mask) -> Value:
        return cast(Value, self._load(index, mask))

    def _load(self, index: Index, mask: Mask) -> np.generic | Elements:
        if isinstance(index, int):
            self.check(index, mask)
            if self.base is None:
                return self.data[index]
            return self.data.take(self.base + index)
        if mask is None:
            self.check(index, None)
            return self.data.take(index if self.base is None else self.base + index)
        found = np.full(self.lanes.count, poison_of(self.data.dtype.type), self.data.dtype)
        found[mask] = self.data.take(self._offsets(index, mask))
        return found

    def store(self, index: Index, value: Value, mask: Mask) -> None:
        """If several lanes write one element, the last one's value stays."""
        if isinstance(index, int):
            index = np.full(self.lanes.count, index)
        offsets = self._offsets(index, mask)
        if mask is not None and isinstance(value, np.ndarray) and value.ndim:
            value = value[mask]
        self.data[offsets] = value

    def _offsets(self, index: Ints, mask: Mask) -> Ints:
        """The offsets in ``data`` of the lanes that take part."""
        if mask is None:
            self.check(index, None)
            return index if self.base is None else self.base + index
        active = index[mask]
        self.check(active, mask)
        return active if self.base is None else self.base[mask] + active


class OutputMemory(FlatMemory):
    """Global memory that a kernel writes: no two threads may access one element.

    ``writers`` has for each element the number of the thread that wrote it, from 1; 0 for none.
    """

    def __init__(self, name: str, dtype: DType, data: Elements, lanes: Lanes, writers: Ints):
        super().__init__(name, dtype, data, lanes)
        self.writers = writers
        self.numbers = lanes.numbers() + 1

    def load(self, index: Index, mask: Mask) -> Value:
        found = super().load(index, mask)
        self._check_writers(index, mask, "read what another thread wrote")
        return found

    def store(self, index: Index, value: Value, mask: Mask) -> None:
        super().store(index, value, mask)
        self._check_writers(index, mask, "written by two threads")
        self.writers[self.active(index, mask)] = self.active(self.numbers, mask)
        self._check_writers(index, mask, "written by two threads")

    def claim(self, index: Ints, lane: int) -> None:
        """``lane`` has elements written that no thread else may access."""
        there, number = self.writers[index], self.numbers[lane]
        wrong = (there != 0) & (there != number)
        if wrong.any():
            raise self.trap(lane, int(index[wrong][0]), "written by two threads")
        self.writers[index] = number

    def _check_writers(self, index: Index, mask: Mask, description: str) -> None:
        offsets = self.active(index, mask)
        writers = self.writers[offsets]
        wrong = (writers != 0) & (writers != self.active(self.numbers, mask))
        self.refuse(wrong, offsets, mask, description)


class Registers(CheckedMemory):
    """An array that each thread has to itself: a row of ``data`` for each element."""

    def __init__(self, name: str, dtype: DType, size: int, lanes: Lanes, *, zero: bool, wide: bool):
        super().__init__(name, dtype, size, lanes)
        self.wide = wide
        self.data = poisoned((size, lanes.count), dtype)
        kind = self.data.dtype.type
        self.fresh = kind(0) if zero else poison_of(kind)
        self.data.fill(self.fresh)
        self.every = np.arange(lanes.count)

    def declare(self, mask: Mask) -> None:
        """What the array holds when its declaration is reached."""
        self.data.fill(self.fresh)

    def load(self, index: Index, mask: Mask) -> Value:
        """A view if all lanes ask for the same element."""
        if isinstance(index, int):
            self.check(index, mask)
            return cast(Value, self.data[index])
        offsets = index if mask is None else np.where(mask, index, 0)
        self.check(offsets, None)
        return cast(Value, self.data[offsets, self.every])

    def store(self, index: Index, value: Value, mask: Mask) -> None:
        if isinstance(index, int):
            self.check(index, mask)
            np.copyto(self.data[index], value, where=True if mask is None else mask)
            return
        offsets, every = index, self.every
        if mask is not None:
            offsets, every = index[mask], self.every[mask]
            value = value[mask] if isinstance(value, np.ndarray) and value.ndim else value
        self.check(offsets, mask)
        self.data[offsets, every] = value

    def check_aligned(self, index: Index, width: int, mask: Mask) -> None:
        """Only arrays that are declared aligned are moved wide."""
        if self.wide:
            super().check_aligned(index, width, mask)
