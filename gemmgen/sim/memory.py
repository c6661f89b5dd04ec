"""Matrices in poisoned memory: whatever a kernel writes beside its matrix shows."""

from __future__ import annotations

import mmap
from dataclasses import dataclass

import numpy as np

from gemmgen.formats import STORAGE, Stored, bits, poison
from gemmgen.ir.dtypes import BYTES, DType

Array = Stored

_NORESERVE = 0x4000  # Linux's MAP_NORESERVE, which mmap has from Python 3.12 on

ALIGNMENT = 256
"""Bytes; that of a GPU's allocations."""

BAND = 1024
"""Elements of poison on either side."""


@dataclass(frozen=True)
class Matrix:
    """``view`` (rows, cols) lies in ``memory``, whose other elements are poison.

    ``pitch`` elements separate two rows; ``start`` is the place of the first element in ``memory``.
    Both arrays hold elements as they are stored (bf16: its bits).
    """

    view: Array
    memory: Array
    start: int
    pitch: int
    dtype: DType = "f32"

    @staticmethod
    def poisoned(
        rows: int, cols: int, pitch: int | None = None, *, offset: int = 0, dtype: DType = "f32"
    ) -> Matrix:
        """A matrix never written.  ``offset`` elements shift it from an aligned address."""
        pitch = cols if pitch is None else pitch
        assert pitch >= cols
        start = BAND + offset
        memory = aligned(start + rows * pitch + BAND, dtype)
        memory[:] = poison(memory.size, dtype)
        rectangle = memory[start : start + rows * pitch].reshape(rows, pitch)
        return Matrix(rectangle[:, :cols], memory, start, pitch, dtype)

    @staticmethod
    def holding(
        values: Array, pitch: int | None = None, *, offset: int = 0, dtype: DType = "f32"
    ) -> Matrix:
        """A matrix that holds a copy of the elements ``values`` (rows, cols)."""
        matrix = Matrix.poisoned(len(values), values.shape[1], pitch, offset=offset, dtype=dtype)
        matrix.view[:] = values
        return matrix

    def touched(self) -> str | None:
        """Where memory beside the matrix was written, in words; None where it wasn't."""
        rows, cols = self.view.shape
        beside = bits(self.memory) != bits(poison(self.memory.size, self.dtype))
        inside = beside[self.start : self.start + rows * self.pitch].reshape(rows, self.pitch)
        inside[:, :cols] = False
        if not beside.any():
            return None
        distance = int(np.argmax(beside)) - self.start
        if distance < 0:
            return f"{-distance} elements before the matrix were written"
        if distance >= rows * self.pitch:
            behind = distance - rows * self.pitch
            return f"the element {behind} behind the matrix was written"
        row, col = divmod(distance, self.pitch)
        return f"the padding at row {row}, column {col} was written"

    def changed(self, before: Array) -> str | None:
        """Where the matrix differs in bits from ``before`` (rows, cols), in words."""
        differs = bits(self.view) != bits(before)
        if not differs.any():
            return None
        row, col = (int(i) for i in np.argwhere(differs)[0])
        return f"the element at row {row}, column {col} changed"


def sparse(values: Array, pitch: int) -> Array:
    """``values`` (rows, cols) with rows ``pitch`` elements apart, in memory of which only the pages
    of the rows exist: a matrix may span more than the machine has."""
    rows, cols = values.shape
    size = values.dtype.itemsize
    memory = mmap.mmap(-1, rows * pitch * size, flags=mmap.MAP_PRIVATE | _NORESERVE)
    view = np.frombuffer(memory, values.dtype).reshape(rows, pitch)[:, :cols]
    view[:] = values
    return view


def aligned(count: int, dtype: DType) -> Array:
    """``count`` elements from an address that a GPU's allocation could have."""
    size = count * BYTES[dtype]
    raw = np.zeros(size + ALIGNMENT, np.uint8)
    skip = -raw.__array_interface__["data"][0] % ALIGNMENT
    return raw[skip : skip + size].view(STORAGE[dtype])
