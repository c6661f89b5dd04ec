"""Launches of kernels that others come before, on the same stream: pre-passes."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from functools import partial
from struct import Struct, calcsize

from gemmgen.gpu.device import cupy
from gemmgen.gpu.driver import Loaded, Prepared, Value, code_of
from gemmgen.gpu.tensor_maps import MappedStarter
from gemmgen.ir.interface import Interface, PrePass


class _ArgumentLayout:
    """How the arguments of a pre-pass are packed."""

    __slots__ = ("offsets", "struct")

    def __init__(self, interface: Interface) -> None:
        codes = [code_of(param) for param in interface.params]
        ends = [calcsize("@" + "".join(codes[: at + 1])) for at in range(len(codes))]
        self.struct = Struct("@" + "".join(codes))
        self.offsets = [end - calcsize("@" + c) for end, c in zip(ends, codes, strict=True)]


class _Arguments:
    """Memory for the arguments of a pre-pass, and the driver's pointers to them."""

    __slots__ = ("_table", "memory", "pointers")

    def __init__(self, layout: _ArgumentLayout) -> None:
        self.memory = bytearray(layout.struct.size)
        start = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        pointers = (start + offset for offset in layout.offsets)
        self._table = (ctypes.c_void_p * len(layout.offsets))(*pointers)
        self.pointers = ctypes.addressof(self._table)


class _PrePass:
    """One pre-pass: ``given`` are its arguments, but of a tensor the place of its address in those
    of a call."""

    __slots__ = ("_free", "_given", "_launch", "_layout", "_loaded", "_places")

    def __init__(self, loaded: Loaded, launch: PrePass, blocks: int, given: Sequence[int]) -> None:
        own = launch.interface
        self._loaded, self._given, self._layout = loaded, [*given], _ArgumentLayout(own)
        self._places = [at for at, param in enumerate(own.params) if param.kind == "tensor"]
        function = loaded.pre_passes[own.name].ptr
        shape = (function, blocks, 1, 1, *own.block, 1, own.dynamic_shared)
        self._launch = partial(cupy().cuda.driver.launchKernel, *shape)
        self._free: list[_Arguments] = []  # pop and append are atomic

    def start(self, stream: int, values: Sequence[Value]) -> None:
        """Launches on ``stream``; the driver copies the arguments before it returns."""
        try:
            arguments = self._free.pop()
        except IndexError:
            arguments = _Arguments(self._layout)
        self._fill(arguments, values)
        try:
            self._launch(stream, arguments.pointers, 0)
        except RuntimeError as failure:
            self._loaded.adopt_context(failure)
            self._launch(stream, arguments.pointers, 0)
        self._free.append(arguments)

    def prepared(self, values: Sequence[Value]) -> Prepared:
        """A repeatable launch with ``values``."""
        arguments = _Arguments(self._layout)
        self._fill(arguments, values)
        return Prepared(self._loaded, self._launch, arguments, None)

    def _fill(self, arguments: _Arguments, values: Sequence[Value]) -> None:
        given = [*self._given]
        for at in self._places:
            given[at] = int(values[given[at]])
        self._layout.struct.pack_into(arguments.memory, 0, *given)


class OrderedStarter(MappedStarter):
    """Launches the pre-passes, then the kernel."""

    __slots__ = ("_pre_passes",)

    def __init__(
        self, loaded: Loaded, blocks: int, integers: tuple[int, ...], extents: Mapping[str, int]
    ) -> None:
        super().__init__(loaded, blocks, integers, extents)
        self._pre_passes = _pre_passes(loaded, extents)

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


def _pre_passes(loaded: Loaded, extents: Mapping[str, int]) -> tuple[_PrePass, ...]:
    """The pre-passes that have blocks."""
    interface = loaded.interface
    order = (*loaded.tensors, *interface.scratch)
    places = {param.name: at for at, param in enumerate(order)}
    counted = ((launch, launch.blocks(extents)) for launch in interface.before)
    return tuple(
        _PrePass(loaded, launch, blocks, [*launch.given({**places, **extents}).values()])
        for launch, blocks in counted
        if blocks
    )
