"""A loaded kernel and its launches: ``cuLaunchKernel`` (with attributes ``cuLaunchKernelEx``) with
packed arguments.

The arguments are packed in the order tensor maps, tensors, scratch, scalars, integers; the driver
gets a pointer to each, in the order of the kernel's parameters, and copies the arguments before it
returns.  A tensor with a map is packed, too, and not pointed to.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from struct import Struct, calcsize
from typing import Any, Protocol

from gemmgen.calling.binding import Binding
from gemmgen.gpu.device import cupy
from gemmgen.ir.interface import Interface
from gemmgen.ir.launch_attribute import ATTRIBUTES
from gemmgen.ir.param import Param

MAP_BYTES, MAP_ALIGNMENT = 128, 128
"""Of a tensor map: CUDA 13 has it so; 64 was enough before."""
Value = float | bytes
Launch = Callable[[int, int, int], None]
"""Of a stream, a raw handle; the address of pointers to the arguments; and 0."""
INVALID_CONTEXT = 201  # CUDA_ERROR_INVALID_CONTEXT


class Loaded:
    """A kernel on a GPU, CuPy's ``function`` of a module, and the layout of its arguments."""

    def __init__(
        self,
        function: Any,
        interface: Interface,
        binding: Binding,
        gpu: int,
        pre_passes: Mapping[str, Any],
    ):
        """``pre_passes``: the functions of ``interface.before``, by name."""
        self.function, self.interface, self.gpu = function, interface, gpu
        self.pre_passes = pre_passes
        self.tensors = binding.tensors
        self.shape = (1, 1, *interface.block, 1, interface.dynamic_shared)
        self.integers = tuple(p for p in interface.params if p.kind in ("extent", "ld", "stride"))
        maps = tuple(param for param in interface.kernel_params if param.kind == "map")
        first = (*maps, *binding.tensors, *interface.scratch, *binding.scalars)
        codes = [code_of(param) for param in (*first, *self.integers)]
        ends = [calcsize("@" + "".join(codes[: at + 1])) for at in range(len(codes))]
        offsets = {
            param: end - calcsize("@" + code)
            for param, code, end in zip((*first, *self.integers), codes, ends, strict=True)
        }
        self.offsets = tuple(offsets[param] for param in interface.kernel_params)
        self.table = ctypes.c_void_p * len(self.offsets)
        self.unset = (b"",) * len(maps) + (0,) * (len(first) - len(maps))
        self.whole = Struct("@" + "".join(codes))
        self.changing = Struct("@" + "".join(codes[: len(first)]))

    def launch(self, blocks: int) -> Launch:
        """The driver's launch of ``blocks`` blocks."""
        shape = (self.function.ptr, blocks, *self.shape)
        if self.interface.attribute is None:
            return partial(cupy().cuda.driver.launchKernel, *shape)
        from gemmgen.gpu.attributed_launches import attributed

        return attributed(ATTRIBUTES[self.interface.attribute], *shape)

    def adopt_context(self, failure: RuntimeError) -> None:
        """Makes the GPU's context current in this thread, if it has none yet."""
        if getattr(failure, "status", None) != INVALID_CONTEXT:
            raise failure
        self.make_current()

    def make_current(self) -> None:
        """Makes the GPU's context that of this thread."""
        cupy().cuda.runtime.setDevice(self.gpu)


class Pointed(Protocol):
    """Packed arguments."""

    pointers: int
    """The address of the driver's pointers to them."""


class Packed:
    """Memory for the arguments of a launch, and the driver's pointers to them."""

    __slots__ = ("_table", "memory", "pointers")

    def __init__(self, loaded: Loaded, integers: tuple[int, ...]) -> None:
        size = loaded.whole.size
        self.memory = aligned(size) if loaded.interface.maps else bytearray(size)
        loaded.whole.pack_into(self.memory, 0, *loaded.unset, *integers)
        start = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        self._table = loaded.table(*(start + offset for offset in loaded.offsets))
        self.pointers = ctypes.addressof(self._table)


def aligned(size: int) -> memoryview:
    """Memory at an address that suits a tensor map."""
    room = bytearray(size + MAP_ALIGNMENT - 1)
    start = ctypes.addressof(ctypes.c_char.from_buffer(room))
    return memoryview(room)[-start % MAP_ALIGNMENT :][:size]


class Starter:
    """Launches a kernel with fixed blocks and integers.  Several threads may use it at once."""

    __slots__ = ("_fill", "_free", "_integers", "_launch", "_loaded")

    def __init__(self, loaded: Loaded, blocks: int, integers: tuple[int, ...]) -> None:
        self._loaded, self._integers = loaded, integers
        self._fill = loaded.changing.pack_into
        self._launch = loaded.launch(blocks)
        self._free: list[Packed] = []  # pop and append are atomic

    def start(self, stream: int, values: Sequence[Value]) -> None:
        """Launches on ``stream``, a raw handle.  ``values``: addresses of tensors and scratch,
        scalars."""
        try:
            packed = self._free.pop()
        except IndexError:
            packed = Packed(self._loaded, self._integers)
        self._fill(packed.memory, 0, *values)
        try:
            self._launch(stream, packed.pointers, 0)
        except RuntimeError as failure:
            self._loaded.adopt_context(failure)
            self._launch(stream, packed.pointers, 0)
        self._free.append(packed)

    def prepared(self, values: Sequence[Value], keep: object) -> Prepared:
        """A repeatable launch with ``values``; it keeps ``keep`` alive."""
        packed = Packed(self._loaded, self._integers)
        self._fill(packed.memory, 0, *values)
        return Prepared(self._loaded, self._launch, packed, keep)


class Prepared:
    """A launch with all arguments packed."""

    __slots__ = ("_keep", "_launch", "_loaded", "_packed")

    def __init__(self, loaded: Loaded, launch: Launch, packed: Pointed, keep: object) -> None:
        self._loaded, self._launch, self._packed, self._keep = loaded, launch, packed, keep

    def start(self, stream: int) -> None:
        """Launches on ``stream``, a raw handle."""
        try:
            self._launch(stream, self._packed.pointers, 0)
        except RuntimeError as failure:
            self._loaded.adopt_context(failure)
            self._launch(stream, self._packed.pointers, 0)


def code_of(param: Param) -> str:
    """The parameter's type as a ``struct`` format."""
    match param.kind:
        case "extent" | "ld":
            return "i"
        case "stride":
            return "q"
        case "scalar":
            return {"f64": "d", "i32": "i"}.get(param.dtype, "f")
        case "map":
            return f"{MAP_BYTES}s"
        case _:
            return "Q"
