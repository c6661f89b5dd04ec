"""Stand-ins for a GPU: a module like CuPy over host memory, and kernels that g++ compiles.

A launch gets addresses, as on a GPU.  The fake finds the tensors at these addresses by the shapes
and strides that the launch was prepared with, and runs the emitted text of the kernel on them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np

from gemmgen.calling.arguments import View
from gemmgen.calling.binding import Binding
from gemmgen.numerics.formats import STORAGE
from gemmgen.pipeline import Emitted
from gemmgen.sim.host_kernel import HostKernel


class FakeKernel:
    """What ``Kernel`` is to the functions; ``calls`` are "call" or "launch" for each run."""

    def __init__(self, emitted: Emitted, calls: list[str]) -> None:
        self._host, self._calls = HostKernel.of(emitted), calls
        binding = Binding(emitted.interface)
        self.tensors, self.scalars = binding.tensors, binding.scalars

    def __call__(self, **arguments: Any) -> None:
        self._calls.append("call")
        found = {name: getattr(value, "host", value) for name, value in arguments.items()}
        self._host(**found)

    def fixed(
        self, like: object, views: Mapping[str, View]
    ) -> Callable[[Sequence[int], tuple[float, ...]], None]:
        def start(addresses: Sequence[int], numbers: tuple[float, ...]) -> None:
            self._calls.append("launch")
            arrays = {
                param.name: at_address(address, views[param.name], STORAGE[param.dtype])
                for param, address in zip(self.tensors, addresses, strict=True)
            }
            scalars = {param.name: x for param, x in zip(self.scalars, numbers, strict=True)}
            self._host(**arrays, **scalars)

        return start


def at_address(address: int, view: View, dtype: np.dtype[Any]) -> np.ndarray:
    """The array there."""
    if 0 in view.shape:
        return np.empty(view.shape, dtype)
    last = sum((n - 1) * step for n, step in zip(view.shape, view.strides, strict=True))
    memory = (ctypes.c_byte * ((last + 1) * dtype.itemsize)).from_address(address)
    flat = np.frombuffer(memory, dtype)
    steps = tuple(step * dtype.itemsize for step in view.strides)
    return np.lib.stride_tricks.as_strided(flat, view.shape, steps)


class FakeArray:
    """A CuPy array of host memory."""

    def __init__(self, shape: Any = (), dtype: Any = "float32", *, of: Any = None) -> None:
        if of is None:
            size = int(np.prod(shape)) * np.dtype(dtype).itemsize
            room = np.full(size + 64, 0x5A, np.uint8)
            start = -room.ctypes.data % 64
            of = room[start : start + size].view(dtype).reshape(shape)
        self.host = of

    @property
    def data(self) -> SimpleNamespace:
        return SimpleNamespace(ptr=self.host.ctypes.data if self.host.size else 0, device_id=0)

    shape = property(lambda self: self.host.shape)
    strides = property(lambda self: self.host.strides)
    dtype = property(lambda self: self.host.dtype)
    _c_contiguous = property(lambda self: self.host.flags.c_contiguous)

    def reshape(self, shape: tuple[int, ...]) -> FakeArray:
        return FakeArray(of=self.host.reshape(shape))

    def swapaxes(self, one: int, other: int) -> FakeArray:
        return FakeArray(of=self.host.swapaxes(one, other))

    def transpose(self, order: tuple[int, ...]) -> FakeArray:
        return FakeArray(of=self.host.transpose(order))


class FakeCupy:
    """The module; ``on`` puts an array into its memory."""

    ndarray = FakeArray

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.current = 0
        runtime = SimpleNamespace(getDevice=lambda: self.current, getDeviceCount=lambda: 1)
        self.cuda = SimpleNamespace(runtime=runtime, Device=lambda _: nullcontext())

    @staticmethod
    def on(array: np.ndarray) -> FakeArray:
        found = FakeArray(array.shape, array.dtype)
        found.host[...] = array
        return found

    @staticmethod
    def ascontiguousarray(array: FakeArray) -> FakeArray:
        return FakeCupy.on(np.ascontiguousarray(array.host))
