"""The memory that launches use beside their tensors: a workspace, and counters that stay zero.

Launches of one stream follow one another, so they may share it; those of two streams may not.  It
is therefore kept for each stream, as long as the kernel lives.  What is recorded (a prepared
launch, a launch that a graph captures) gets memory of its own, since nobody knows where it will
run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

from gemmgen.errors import CallError
from gemmgen.formats import NAMES
from gemmgen.gpu.arguments import View
from gemmgen.gpu.device import Array, Stream, cupy
from gemmgen.interface import Interface, Param

_STREAMS = 64  # whose memory is kept

Scratch = tuple[Array, ...]
"""An array for each of ``interface.scratch``."""


class Pool:
    """The scratch memory of one kernel."""

    def __init__(self, interface: Interface) -> None:
        self._interface = interface
        self._streams: dict[int, tuple[Stream, Scratch]] = {}
        self._captured: list[Scratch] = []

    def here(self, extents: Mapping[str, int]) -> Scratch:
        """For a launch on CuPy's current stream, now."""
        stream = cupy().cuda.get_current_stream()
        if stream.is_capturing():
            own = self.own(extents)
            self._captured.append(own)  # the graph does not keep it alive
            return own
        sizes = self._sizes(extents)
        _, found = self._streams.get(stream.ptr, (stream, ()))
        if not found or any(a.shape[0] < size for a, size in zip(found, sizes, strict=True)):
            found = tuple(
                _fresh(param, size)
                for param, size in zip(self._interface.scratch, sizes, strict=True)
            )
            if len(self._streams) >= _STREAMS:
                cupy().cuda.runtime.deviceSynchronize()
                self._streams.clear()
            # The stream is kept too, so that no other one gets its number.
            self._streams[stream.ptr] = stream, found
        return found

    def own(self, extents: Mapping[str, int]) -> Scratch:
        """For one recorded launch alone, wherever and whenever it runs."""
        params = self._interface.scratch
        return tuple(_alone(p, n) for p, n in zip(params, self._sizes(extents), strict=True))

    def check(self, extents: Mapping[str, int], views: Mapping[str, View]) -> None:
        """Refuses memory that a caller passes and the kernel can't use."""
        params = self._interface.scratch
        for param, size in zip(params, self._sizes(extents), strict=True):
            if param.name not in views:
                names = " and ".join(p.name for p in params)
                raise CallError(f"{param.name} is missing: pass {names}, or none of them")
            _check(param, size, views[param.name])

    def _sizes(self, extents: Mapping[str, int]) -> tuple[int, ...]:
        scratch = self._interface.scratch
        return tuple(self._interface.scratch_elements(param, extents) for param in scratch)


def _dtype(param: Param) -> str:
    return "uint32" if param.kind == "counter" else NAMES[param.dtype]


def _fresh(param: Param, size: int) -> Array:
    """In the current stream's order."""
    make = cupy().zeros if param.zeroed else cupy().empty
    return make((max(size, 1),), _dtype(param))


def _alone(param: Param, size: int) -> Array:
    """Zeroed when this returns.  Not of CuPy's pool, which could hand it on while a launch that
    nobody waits for still uses it; works while a stream captures, too."""
    cp = cupy()
    memory = cp.cuda.Memory(max(size, 1) * param.item)
    view = cast(Callable[[tuple[int, ...], str, object], Array], cp.ndarray)
    with cp.cuda.Stream(non_blocking=True) as stream:
        found = view((max(size, 1),), _dtype(param), cp.cuda.MemoryPointer(memory, 0))
        if param.zeroed:
            found.fill(0)
        stream.synchronize()
    return found


def _check(param: Param, size: int, view: View) -> None:
    known = ("uint32", "int32") if param.kind == "counter" else (_dtype(param),)
    if view.dtype not in known:
        raise CallError(f"{param.name} is {view.dtype}; the kernel takes {known[0]}")
    count = 1
    for extent in view.shape:
        count *= extent
    expected = 1
    for extent, stride in zip(reversed(view.shape), reversed(view.strides), strict=True):
        if extent > 1 and stride != expected:
            raise CallError(f"{param.name} is not contiguous")
        expected *= extent
    if count < size:
        raise CallError(f"{param.name} has {count} elements; this call needs {size}")
    if view.pointer % param.align:
        raise CallError(f"{param.name} must be aligned to {param.align} bytes")
