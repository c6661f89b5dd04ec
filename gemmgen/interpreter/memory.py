"""The memories of running threads: flat, poisoned, and every access checked.

Threads run side by side; each is a *lane* of the arrays here.  A mask says which lanes take part in
an access, None that all do.
"""

from __future__ import annotations

from typing import cast

import numpy as np
import numpy.typing as npt

from gemmgen.base.record import record
from gemmgen.interpreter.evaluate import Bools, Ints
from gemmgen.ir.dtypes import HALVES, DType
from gemmgen.numerics.formats import STORAGE

F32 = npt.NDArray[np.float32]
Elements = npt.NDArray[np.float32 | np.float64 | np.uint16]
"""What memories hold: numbers, or the raw bits of f16 and bf16."""
Mask = Bools | None
Index = int | Ints
POISON: dict[type[np.generic], np.generic] = {
    np.float32: np.float32(np.nan),
    np.float64: np.float64(np.nan),
    np.uint16: np.uint16(0x7FFF),
}
"""A NaN as an element of each type; the bits are one of f16 and of bf16."""


def elements(dtype: DType) -> np.dtype[np.generic]:
    """What a memory of ``dtype`` is made of."""
    return np.dtype(np.uint16) if dtype in HALVES else STORAGE[dtype]


def poisoned(count: int | tuple[int, ...], dtype: DType) -> Elements:
    """Elements that were never written."""
    kind = elements(dtype)
    return cast(Elements, np.full(count, POISON[kind.type], kind))


class Trap(Exception):
    """A thread did what it may not: an access out of bounds, misaligned or in conflict."""

    def __init__(self, buffer: str, thread: str, index: int, description: str):
        super().__init__(f"{buffer}[{index}]: {description}, by {thread}")
        self.buffer = buffer
        self.thread = thread
        self.index = index
        self.description = description


@record
class Lanes:
    """The threads that run at once: those of ``blocks`` blocks from number ``first`` on.

    ``x`` and ``y`` are a block's threads along threadIdx.x and threadIdx.y.
    """

    first: int
    blocks: int
    x: int
    y: int

    @property
    def threads(self) -> int:
        return self.x * self.y

    @property
    def count(self) -> int:
        return self.blocks * self.threads

    def name(self, lane: int) -> str:
        block, thread = divmod(lane, self.threads)
        return f"block {self.first + block}, thread ({thread % self.x}, {thread // self.x})"

    def builtins(self) -> dict[str, Index]:
        """``threadIdx`` and ``blockIdx``; an int where all lanes have the same."""
        thread = np.tile(np.arange(self.threads), self.blocks)
        block = np.repeat(np.arange(self.first, self.first + self.blocks), self.threads)
        return {
            "threadIdx.x": thread % self.x if self.x > 1 else 0,
            "threadIdx.y": thread // self.x if self.y > 1 else 0,
            "blockIdx.x": block if self.blocks > 1 else self.first,
        }


class Memory:
    """A named array of ``size`` elements, of which each lane sees all."""

    def __init__(self, name: str, size: int, lanes: Lanes):
        self.name, self.size, self.lanes = name, size, lanes

    def check_aligned(self, index: Index, width: int, mask: Mask) -> None:
        """A wide access starts at a multiple of its width."""
        wrong = np.asarray(index) % width != 0
        if mask is not None:
            wrong = wrong & mask
        if wrong.any():
            lane = int(np.argmax(wrong))
            place = index if isinstance(index, int) else int(index[lane])
            raise self.trap(lane, place, f"misaligned access of width {width}")

    def check(self, index: Index, mask: Mask) -> None:
        """``index`` (of the lanes in ``mask`` alone) lies inside."""
        if isinstance(index, int):
            if not 0 <= index < self.size:
                raise self.trap(_lane(0, mask), index, f"out of bounds of {self.size} elements")
            return
        # Negative numbers are great ones when read as unsigned.
        wrong = index.view(np.uint64) >= self.size
        if wrong.any():
            at = int(np.argmax(wrong))
            place = int(index[at])
            raise self.trap(_lane(at, mask), place, f"out of bounds of {self.size} elements")

    def trap(self, lane: int, index: int, description: str) -> Trap:
        return Trap(self.name, self.lanes.name(lane), index, description)


def _lane(at: int, mask: Mask) -> int:
    """The number of the ``at``-th lane in ``mask``."""
    return at if mask is None else int(np.flatnonzero(mask)[at])


class FlatMemory(Memory):
    """Global memory, or the shared arrays of blocks side by side (``per_block``)."""

    def __init__(self, name: str, data: Elements, lanes: Lanes, *, per_block: bool = False):
        super().__init__(name, data.size // lanes.blocks if per_block else data.size, lanes)
        self.data = data
        numbers = np.repeat(np.arange(lanes.blocks), lanes.threads)
        self.base = numbers * self.size if per_block and lanes.blocks > 1 else None

    def load(self, index: Index, mask: Mask) -> np.generic | Elements:
        if isinstance(index, int):
            self.check(index, mask)
            if self.base is None:
                return self.data[index]
            return self.data.take(self.base + index)
        if mask is None:
            self.check(index, None)
            return self.data.take(index if self.base is None else self.base + index)
        found = np.full(self.lanes.count, POISON[self.data.dtype.type], self.data.dtype)
        found[mask] = self.data.take(self._places(index, mask))
        return found

    def store(self, index: Index, value: np.generic | Elements, mask: Mask) -> None:
        """Where several lanes write one element, the last one's value stays."""
        if isinstance(index, int):
            index = np.full(self.lanes.count, index)
        places = self._places(index, mask)
        if mask is not None and isinstance(value, np.ndarray) and value.ndim:
            value = value[mask]
        self.data[places] = value

    def _places(self, index: Ints, mask: Mask) -> Ints:
        """The places in ``data`` of the lanes that take part."""
        if mask is None:
            self.check(index, None)
            return index if self.base is None else self.base + index
        active = index[mask]
        self.check(active, mask)
        return active if self.base is None else self.base[mask] + active


class OutputMemory(FlatMemory):
    """Global memory that a kernel writes: no two threads may meet in one element.

    ``writers`` has for each element the number of the thread that wrote it, from 1; 0 for none.
    """

    def __init__(self, name: str, data: Elements, lanes: Lanes, writers: Ints):
        super().__init__(name, data, lanes)
        self.writers = writers
        self.numbers = np.arange(lanes.count) + lanes.first * lanes.threads + 1

    def load(self, index: Index, mask: Mask) -> np.generic | Elements:
        found = super().load(index, mask)
        self._check_writers(index, mask, "read what another thread wrote")
        return found

    def store(self, index: Index, value: np.generic | Elements, mask: Mask) -> None:
        super().store(index, value, mask)
        self._check_writers(index, mask, "written by two threads")
        places, numbers = self._active(index, mask)
        self.writers[places] = numbers
        self._check_writers(index, mask, "written by two threads")

    def _active(self, index: Index, mask: Mask) -> tuple[Ints, Ints]:
        places = np.full(self.lanes.count, index) if isinstance(index, int) else index
        return (places, self.numbers) if mask is None else (places[mask], self.numbers[mask])

    def _check_writers(self, index: Index, mask: Mask, description: str) -> None:
        places, numbers = self._active(index, mask)
        writers = self.writers[places]
        wrong = (writers != 0) & (writers != numbers)
        if wrong.any():
            at = int(np.argmax(wrong))
            lane = int(numbers[at]) - 1 - self.lanes.first * self.lanes.threads
            raise self.trap(lane, int(places[at]), description)


class Registers(Memory):
    """An array that each thread has to itself: a row of ``data`` for each element."""

    def __init__(
        self, name: str, size: int, lanes: Lanes, *, zero: bool, wide: bool, dtype: DType = "f32"
    ):
        super().__init__(name, size, lanes)
        self.wide = wide
        self.data = poisoned((size, lanes.count), dtype)
        kind = self.data.dtype.type
        self.fresh = kind(0) if zero else POISON[kind]
        self.data.fill(self.fresh)
        self.every = np.arange(lanes.count)

    def declare(self) -> None:
        """What the array holds where its declaration is reached."""
        self.data.fill(self.fresh)

    def load(self, index: Index, mask: Mask) -> Elements:
        """A view where all lanes ask for the same element."""
        if isinstance(index, int):
            self.check(index, mask)
            return self.data[index]
        places = index if mask is None else np.where(mask, index, 0)
        self.check(places, None)
        return self.data[places, self.every]

    def store(self, index: Index, value: np.generic | Elements, mask: Mask) -> None:
        if isinstance(index, int):
            self.check(index, mask)
            np.copyto(self.data[index], value, where=True if mask is None else mask)
            return
        places, every = index, self.every
        if mask is not None:
            places, every = index[mask], self.every[mask]
            value = value[mask] if isinstance(value, np.ndarray) and value.ndim else value
        self.check(places, mask)
        self.data[places, every] = value

    def check_aligned(self, index: Index, width: int, mask: Mask) -> None:
        """Only arrays that are declared aligned are moved wide."""
        if self.wide:
            super().check_aligned(index, width, mask)
