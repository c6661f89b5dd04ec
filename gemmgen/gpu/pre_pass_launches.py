"""Launches of kernels that read parts of their operands: a pre-pass splits these, on
the same stream."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from functools import partial
from struct import Struct

from gemmgen.gpu.device import cupy
from gemmgen.gpu.driver import Loaded, Prepared, Value
from gemmgen.gpu.tensor_maps import MappedStarter
from gemmgen.ir.interface import Interface
from gemmgen.ir.planes import THREADS, blocks_of

_ARGUMENTS = Struct("@iiQiQ")
"""Rows, columns, the matrix, its leading dimension, and its planes."""
_OFFSETS = (0, 4, 8, 16, 24)


class _Arguments:
    """Memory for the arguments of a pre-pass, and the driver's pointers to them."""

    __slots__ = ("_table", "memory", "pointers")

    def __init__(self) -> None:
        self.memory = bytearray(_ARGUMENTS.size)
        start = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        self._table = (ctypes.c_void_p * len(_OFFSETS))(*(start + offset for offset in _OFFSETS))
        self.pointers = ctypes.addressof(self._table)


class _PrePass:
    """One pre-pass, but for its addresses: their places in those of a call."""

    __slots__ = ("_free", "_integers", "_launch", "_loaded", "_places")

    def __init__(
        self,
        loaded: Loaded,
        blocks: int,
        integers: tuple[int, int, int],
        places: tuple[int, int],
    ) -> None:
        self._loaded, self._integers, self._places = loaded, integers, places
        shape = (loaded.pre_pass.ptr, blocks, 1, 1, THREADS, 1, 1, 0)
        self._launch = partial(cupy().cuda.driver.launchKernel, *shape)
        self._free: list[_Arguments] = []  # pop and append are atomic

    def start(self, stream: int, values: Sequence[Value]) -> None:
        """Launches on ``stream``; the driver copies the arguments before it returns."""
        try:
            arguments = self._free.pop()
        except IndexError:
            arguments = _Arguments()
        self._fill(arguments, values)
        try:
            self._launch(stream, arguments.pointers, 0)
        except RuntimeError as failure:
            self._loaded.adopt_context(failure)
            self._launch(stream, arguments.pointers, 0)
        self._free.append(arguments)

    def prepared(self, values: Sequence[Value]) -> Prepared:
        """A repeatable launch with ``values``."""
        arguments = _Arguments()
        self._fill(arguments, values)
        return Prepared(self._loaded, self._launch, arguments, None)

    def _fill(self, arguments: _Arguments, values: Sequence[Value]) -> None:
        rows, columns, pitch = self._integers
        source, planes = self._places
        addresses = int(values[source]), int(values[planes])
        _ARGUMENTS.pack_into(arguments.memory, 0, rows, columns, addresses[0], pitch, addresses[1])


class SplittingStarter(MappedStarter):
    """Launches the pre-pass of each operand, then the kernel."""

    __slots__ = ("_pre_passes",)

    def __init__(
        self, loaded: Loaded, blocks: int, integers: tuple[int, ...], extents: Mapping[str, int]
    ) -> None:
        super().__init__(loaded, blocks, integers, extents)
        self._pre_passes = _pre_passes(loaded, loaded.interface, extents)

    def start(self, stream: int, values: Sequence[Value]) -> None:
        for pre_pass in self._pre_passes:
            pre_pass.start(stream, values)
        super().start(stream, values)

    def prepared(self, values: Sequence[Value], keep: object) -> Prepared:
        pre_passes = tuple(pre_pass.prepared(values) for pre_pass in self._pre_passes)
        return _InOrder(super().prepared(values, keep), pre_passes)


class _InOrder(Prepared):
    """A prepared launch, and its pre-passes: each packed once, when it was prepared."""

    __slots__ = ("_starts",)

    def __init__(self, last: Prepared, pre_passes: tuple[Prepared, ...]) -> None:
        self._starts = tuple(one.start for one in (*pre_passes, last))

    def start(self, stream: int) -> None:
        for start in self._starts:
            start(stream)


def _pre_passes(
    loaded: Loaded, interface: Interface, extents: Mapping[str, int]
) -> tuple[_PrePass, ...]:
    """The pre-passes; none for an operand without elements."""
    order = (*loaded.tensors, *interface.scratch)
    places = {param.name: at for at, param in enumerate(order)}
    pitches, found = dict(interface.pitch), list[_PrePass]()
    for param in interface.split:
        own = param.planes
        assert own is not None
        rows, columns = extents[own.rows], extents[own.columns]
        if rows * columns:
            integers = rows, columns, extents[pitches[own.source]]
            pair = places[own.source], places[param.name]
            found.append(_PrePass(loaded, blocks_of(rows, columns), integers, pair))
    return tuple(found)
