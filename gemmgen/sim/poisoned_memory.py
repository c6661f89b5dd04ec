"""Tensors in poisoned memory, which exposes writes outside their elements."""

from __future__ import annotations

import mmap
from typing import cast

import numpy as np
from numpy.lib.stride_tricks import as_strided

from gemmgen.base.record import record
from gemmgen.calling.strides import bounds
from gemmgen.ir.dtypes import BYTES, DType
from gemmgen.numerics.formats import STORAGE, Stored, bits, poison

Array = Stored

_NORESERVE = 0x4000  # Linux's MAP_NORESERVE, which mmap has from Python 3.12 on

ALIGNMENT = 256
"""Bytes; that of a GPU's allocations."""

WIDEST = 16
"""Bytes of the widest access."""

BAND = 1024
"""Elements of poison on either side."""


@record
class EmbeddedView:
    """``view`` (rows, cols; or any shape) is a part of ``memory``, whose other elements are poison.

    ``strides`` count elements; ``start`` is the position of the first element in ``memory``.  Both
    arrays hold elements as they are stored (bf16: its bits).
    """

    view: Array
    memory: Array
    start: int
    strides: tuple[int, ...]
    dtype: DType = "f32"

    @staticmethod
    def strided(
        shape: tuple[int, ...], strides: tuple[int, ...], *, offset: int = 0, dtype: DType = "f32"
    ) -> EmbeddedView:
        """Elements never written.  ``offset`` elements shift them from an aligned address."""
        low, high = bounds(shape, strides)
        reach = max((n * abs(s) for n, s in zip(shape, strides, strict=True)), default=1)
        start = BAND + offset - low
        return EmbeddedView._within(
            BAND + offset + max(high - low, reach) + BAND, start, shape, strides, dtype
        )

    @staticmethod
    def at_the_end(
        shape: tuple[int, ...], strides: tuple[int, ...], *, dtype: DType
    ) -> EmbeddedView:
        """Elements never written, aligned to ``WIDEST`` bytes, the last of which ends the memory:
        the CPU run's guard page begins less than ``WIDEST`` bytes after it."""
        low, high = bounds(shape, strides)
        item = BYTES[dtype]
        ahead = -(BAND + high - low) * item % ALIGNMENT // WIDEST * WIDEST // item
        start = BAND + ahead - low
        return EmbeddedView._within(start + high, start, shape, strides, dtype)

    @staticmethod
    def _within(
        size: int, start: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: DType
    ) -> EmbeddedView:
        memory = aligned(size, dtype)
        memory[:] = poison(memory.size, dtype)
        steps = tuple(s * memory.itemsize for s in strides)
        return EmbeddedView(as_strided(memory[start:], shape, steps), memory, start, strides, dtype)

    @property
    def pitch(self) -> int:
        """Elements between two rows."""
        return self.strides[-2]

    def touched(self) -> str | None:
        """A sentence that says which memory outside the elements was written; None if none was."""
        written = bits(self.memory) != bits(poison(self.memory.size, self.dtype))
        item = written.itemsize
        own = as_strided(
            written[self.start :], self.view.shape, tuple(s * item for s in self.strides)
        )
        own[...] = False
        if not written.any():
            return None
        distance = int(np.argmax(written)) - self.start
        low, high = bounds(self.view.shape, self.strides)
        if distance < low:
            return f"{low - distance} elements before the matrix were written"
        if self.view.ndim != 2:
            position = f"{distance - high} past" if distance >= high else f"{distance} within"
            return f"an element outside the tensor was written, {position} it"
        end = len(self.view) * self.pitch
        if distance >= end:
            return f"the element {distance - end} past the matrix was written"
        row, col = divmod(distance, self.pitch)
        return f"the padding at row {row}, column {col} was written"

    def changed(self, before: Array) -> str | None:
        """A sentence that says which element differs in bits from ``before`` (of the view's shape),
        or None."""
        differs = bits(self.view) != bits(before)
        if not differs.any():
            return None
        index = tuple(int(i) for i in np.argwhere(differs)[0])
        if len(index) != 2:
            return f"the element [{', '.join(map(str, index))}] changed"
        return f"the element at row {index[0]}, column {index[1]} changed"


@record
class Sparse(EmbeddedView):
    """A matrix that may span more memory than the machine has: only accessed pages exist.

    The memory outside its elements is zero and isn't checked; a checked run finds accesses to it.
    """

    @staticmethod
    def spanning(shape: tuple[int, ...], strides: tuple[int, ...], *, dtype: DType) -> Sparse:
        """Elements never written; strides are not negative.  ``OSError`` if the machine grants no
        address space for them."""
        _, high = bounds(shape, strides)
        memory = cast(Array, np.frombuffer(_mapped(high * BYTES[dtype]), STORAGE[dtype]))
        view = as_strided(memory, shape, tuple(s * memory.itemsize for s in strides))
        view[...] = poison(view.size, dtype).reshape(shape)
        return Sparse(view, memory, 0, strides, dtype)

    def touched(self) -> str | None:
        return None


def can_span(size: int) -> bool:
    """Whether the machine grants an address space of ``size`` bytes."""
    try:
        _mapped(size).close()
    except OSError:
        return False
    return True


def _mapped(size: int) -> mmap.mmap:
    return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | _NORESERVE)


def aligned(count: int, dtype: DType) -> Array:
    """``count`` elements from an address that a GPU's allocation could have."""
    size = count * BYTES[dtype]
    raw = np.zeros(size + ALIGNMENT, np.uint8)
    skip = -raw.__array_interface__["data"][0] % ALIGNMENT
    return cast(Array, raw[skip : skip + size].view(STORAGE[dtype]))
