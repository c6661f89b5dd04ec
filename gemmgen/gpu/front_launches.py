"""Launches of kernels that read parts of their operands: another kernel splits these in front, on
the same stream."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from struct import Struct

from gemmgen.gpu.device import cupy
from gemmgen.gpu.driver import Loaded, Prepared, Value
from gemmgen.gpu.tensor_maps import MappedStarter
from gemmgen.ir.interface import Interface
from gemmgen.ir.planes import THREADS, blocks_of

_ARGUMENTS = Struct("@iiQiQ")
"""Rows, columns, the matrix, its leading dimension, and its planes."""
_OFFSETS = (0, 4, 8, 16, 24)


class _Front:
    """One launch in front, but for its addresses: their places in those of a call."""

    __slots__ = ("blocks", "integers", "planes", "source")

    def __init__(
        self, blocks: int, integers: tuple[int, int, int], source: int, planes: int
    ) -> None:
        self.blocks, self.integers, self.source, self.planes = blocks, integers, source, planes

    def packed(self, values: Sequence[Value]) -> bytearray:
        rows, columns, pitch = self.integers
        source, planes = int(values[self.source]), int(values[self.planes])
        return bytearray(_ARGUMENTS.pack(rows, columns, source, pitch, planes))


class SplittingStarter(MappedStarter):
    """Launches the kernel in front for each operand, then the kernel."""

    __slots__ = ("_fronts",)

    def __init__(
        self, loaded: Loaded, blocks: int, integers: tuple[int, ...], extents: Mapping[str, int]
    ) -> None:
        super().__init__(loaded, blocks, integers, extents)
        self._fronts = _fronts(loaded, loaded.interface, extents)

    def start(self, stream: int, values: Sequence[Value]) -> None:
        for front in self._fronts:
            _launch(self._loaded, front.blocks, front.packed(values), stream)
        super().start(stream, values)

    def prepared(self, values: Sequence[Value], keep: object) -> Prepared:
        packed = tuple((front.blocks, front.packed(values)) for front in self._fronts)
        return _Both(packed, self._loaded, super().prepared(values, keep))


class _Both(Prepared):
    """A prepared launch, and those in front of it."""

    __slots__ = ("_behind", "_packed_fronts")

    def __init__(
        self, fronts: tuple[tuple[int, bytearray], ...], loaded: Loaded, behind: Prepared
    ) -> None:
        self._packed_fronts, self._loaded, self._behind = fronts, loaded, behind

    def start(self, stream: int) -> None:
        for blocks, packed in self._packed_fronts:
            _launch(self._loaded, blocks, packed, stream)
        self._behind.start(stream)


def _fronts(loaded: Loaded, interface: Interface, extents: Mapping[str, int]) -> tuple[_Front, ...]:
    """The launches in front; none for an operand without elements."""
    order = (*loaded.tensors, *interface.scratch)
    places = {param.name: at for at, param in enumerate(order)}
    pitches, found = dict(interface.pitch), list[_Front]()
    for param in interface.split:
        own = param.planes
        assert own is not None
        rows, columns = extents[own.rows], extents[own.columns]
        if rows * columns:
            integers = rows, columns, extents[pitches[own.source]]
            blocks = blocks_of(rows, columns)
            found.append(_Front(blocks, integers, places[own.source], places[param.name]))
    return tuple(found)


def _launch(loaded: Loaded, blocks: int, packed: bytearray, stream: int) -> None:
    """Launches the kernel in front; the driver copies its arguments before it returns."""
    start = ctypes.addressof(ctypes.c_char.from_buffer(packed))
    table = (ctypes.c_void_p * len(_OFFSETS))(*(start + offset for offset in _OFFSETS))
    shape = (loaded.front.ptr, blocks, 1, 1, THREADS, 1, 1, 0)
    launch, pointers = cupy().cuda.driver.launchKernel, ctypes.addressof(table)
    try:
        launch(*shape, stream, pointers, 0)
    except RuntimeError as failure:
        loaded.adopt_context(failure)
        launch(*shape, stream, pointers, 0)
