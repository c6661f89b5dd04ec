"""Scratch memory of launches: a workspace, and counters that are zero between launches.

Launches on one stream are ordered, so they share it; those on two streams may not.  It is therefore
kept for each stream, for the life of the kernel.  A launch that a graph captures gets memory of the
graph's, zeroed and freed within it.  A prepared launch has its own memory, since its stream is
not known.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from math import prod

from gemmgen.base.errors import CallError
from gemmgen.calling.arguments import View
from gemmgen.gpu.arrays import CupyArrays, Library
from gemmgen.gpu.device import DeviceArray, cupy
from gemmgen.ir.interface import Interface
from gemmgen.ir.param import Param
from gemmgen.numerics.formats import NAMES

_STREAMS = 64  # streams whose memory is kept

Addresses = tuple[int, ...]
"""An address for each of ``interface.scratch``."""


class Pool:
    """The scratch memory of one kernel.  ``sizes`` are the elements of each scratch parameter."""

    def __init__(self, interface: Interface, gpu: int) -> None:
        self._params, self._gpu = interface.scratch, gpu
        self._streams: OrderedDict[tuple[str, int], _Kept] = OrderedDict()

    @contextmanager
    def lent(self, library: Library, stream: int, sizes: Sequence[int]) -> Generator[Addresses]:
        """A context with memory for one launch on ``stream``, the current one of ``library``."""
        if not cupy().cuda.runtime.streamIsCapturing(stream):
            yield self._kept(library, stream, sizes).addresses
        elif isinstance(library, CupyArrays):
            with _in_graph(self._bytes(sizes), stream) as addresses:
                yield addresses
        else:
            yield self._fresh(library, sizes).addresses

    def own(self, library: Library, sizes: Sequence[int]) -> _Kept:
        """Memory for one prepared launch, on any stream."""
        capturing = cupy().cuda.runtime.streamIsCapturing(library.stream(self._gpu))
        if capturing and not isinstance(library, CupyArrays):
            raise CallError(
                "the launch needs zeroed its own memory, which can't be had while a graph is "
                "captured: prepare it before the capture, or call the kernel within it"
            )
        return self._apart(sizes)

    def check(self, sizes: Sequence[int], views: Sequence[View | None]) -> Addresses:
        """The addresses of memory that a caller passes; refuses what the kernel can't use."""
        for param, size, view in zip(self._params, sizes, views, strict=True):
            if view is None:
                names = " and ".join(p.name for p in self._params)
                raise CallError(f"{param.name} is missing: pass {names}, or none of them")
            _check(param, size, view)
        return tuple(view.pointer for view in views if view is not None)

    def _kept(self, library: Library, stream: int, sizes: Sequence[int]) -> _Kept:
        key = library.name, stream
        found = self._streams.get(key)
        if found is None or any(map(int.__gt__, sizes, found.sizes)):
            # PyTorch's allocator may return memory of a graph's private pool, as it does in the
            # calls before a capture: memory that outlives the call must not be from there.
            is_cupy = isinstance(library, CupyArrays)
            found = self._fresh(library, sizes) if is_cupy else self._apart(sizes)
            found.keep += (library.stream_object(self._gpu),)
            # Dropped memory returns to an allocator that reuses it in its stream's order, or is
            # freed when the GPU is done.
            self._streams[key] = found
            if len(self._streams) > _STREAMS:
                self._streams.popitem(last=False)
        return found

    def _fresh(self, library: Library, sizes: Sequence[int]) -> _Kept:
        """Memory of the library's allocator, in the current stream's order."""
        made = [library.memory(n, self._gpu, zeroed=z) for n, z in self._bytes(sizes)]
        memory, addresses = zip(*made, strict=True)
        return _Kept(tuple(sizes), addresses, memory)

    def _apart(self, sizes: Sequence[int]) -> _Kept:
        """Memory that is of no library's allocator."""
        made = [_alone(size, zeroed) for size, zeroed in self._bytes(sizes)]
        return _Kept(tuple(sizes), tuple(a.data.ptr for a in made), tuple(made))

    def _bytes(self, sizes: Sequence[int]) -> list[tuple[int, bool]]:
        """The size of each memory, and whether it must be zeroed."""
        both = zip(self._params, sizes, strict=True)
        return [(max(size, 1) * param.item, param.zeroed) for param, size in both]


class _Kept:
    """Memory, and the objects that keep it alive."""

    __slots__ = ("addresses", "keep", "sizes")

    def __init__(self, sizes: tuple[int, ...], addresses: Addresses, keep: tuple[object, ...]):
        self.sizes, self.addresses, self.keep = sizes, addresses, keep


@contextmanager
def _in_graph(wanted: Sequence[tuple[int, bool]], stream: int) -> Generator[Addresses]:
    """A context with memory that the graph captured on ``stream`` allocates and frees."""
    runtime = cupy().cuda.runtime
    addresses = tuple(runtime.mallocAsync(size, stream) for size, _ in wanted)
    for address, (size, zeroed) in zip(addresses, wanted, strict=True):
        if zeroed:
            runtime.memsetAsync(address, 0, size, stream)
    yield addresses
    for address in addresses:
        runtime.freeAsync(address, stream)


def _alone(size: int, zeroed: bool) -> DeviceArray:
    """Memory, zeroed when this returns.  It is not from a pool, which could reuse it while a launch
    still runs."""
    cp = cupy()
    memory = cp.cuda.Memory(size)
    with cp.cuda.Stream(non_blocking=True) as stream:
        found = cp.ndarray((size,), "uint8", cp.cuda.MemoryPointer(memory, 0))
        if zeroed:
            found.fill(0)
        stream.synchronize()
    return found


def _check(param: Param, size: int, view: View) -> None:
    known = ("uint32", "int32") if param.kind == "counter" else (NAMES[param.dtype],)
    if view.dtype not in known:
        raise CallError(f"{param.name} is {view.dtype}; the kernel takes {known[0]}")
    expected = 1
    for extent, stride in zip(reversed(view.shape), reversed(view.strides), strict=True):
        if extent > 1 and stride != expected:
            raise CallError(f"{param.name} is not contiguous")
        expected *= extent
    count = prod(view.shape)
    if count < size:
        raise CallError(f"{param.name} has {count} elements; this call needs {size}")
    if view.pointer % param.align:
        raise CallError(f"{param.name} must be aligned to {param.align} bytes")
