"""Launches of kernels that take tensor maps: the driver encodes them, and gets them by value.

A map depends on a tensor's address, extents, leading dimension and strides.  All but the address
are a ``Starter``'s, which keeps the maps that it has launched with; a prepared launch has its own.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from functools import cache

from gemmgen.base.errors import CallError, CannotCheck
from gemmgen.gpu.driver import MAP_BYTES, Loaded, Prepared, Starter, Value, aligned
from gemmgen.ir.tensor_map import DATA_TYPES, L2_PROMOTION, MapFields

LIBRARY = "libcuda.so.1"
"""The driver's library: it is wherever there is a driver."""
_KEPT = 1024  # maps that a starter keeps


class MappedStarter(Starter):
    """Launches with fixed blocks and integers; ``extents`` has these by their names."""

    __slots__ = ("_fields", "_known")

    def __init__(
        self, loaded: Loaded, blocks: int, integers: tuple[int, ...], extents: Mapping[str, int]
    ) -> None:
        super().__init__(loaded, blocks, integers)
        interface = loaded.interface
        places = {param.name: at for at, param in enumerate(loaded.tensors)}
        self._fields = [
            (places[one.tensor], one.tensor, interface.map_fields(one, extents))
            for one in interface.kernel_maps
        ]
        self._known: dict[tuple[int, Value], bytes] = {}

    def start(self, stream: int, values: Sequence[Value]) -> None:
        super().start(stream, (*self._maps(values), *values))

    def prepared(self, values: Sequence[Value], keep: object) -> Prepared:
        return super().prepared((*self._maps(values), *values), keep)

    def _maps(self, values: Sequence[Value]) -> list[bytes]:
        """The maps of tensors at the addresses that ``values`` begin with."""
        known = self._known
        try:
            return [known[at, values[at]] for at, _, _ in self._fields]
        except KeyError:
            if len(known) > _KEPT:
                known.clear()
            return [self._map(at, name, fields, values[at]) for at, name, fields in self._fields]

    def _map(self, at: int, name: str, fields: MapFields, address: Value) -> bytes:
        found = self._known.get((at, address))
        if found is None:
            found = self._known[at, address] = encoded(name, fields, int(address))
        return found


def encoded(name: str, fields: MapFields, address: int) -> bytes:
    """The map of the tensor ``name`` at ``address``, as the driver encodes it.

    Raises ``CallError`` if it refuses to, ``CannotCheck`` without a driver of CUDA 12 or later.
    """
    encode, memory = _encode(), aligned(MAP_BYTES)
    place = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    rank = len(fields.sizes)
    sizes = (ctypes.c_uint64 * rank)(*fields.encoded_sizes)
    strides = (ctypes.c_uint64 * rank)(*fields.strides)
    box = (ctypes.c_uint32 * rank)(*fields.box)
    steps = (ctypes.c_uint32 * rank)(*(1,) * rank)
    number, _ = DATA_TYPES[fields.dtype]
    # Nothing is read of a tensor without elements, but no map is of address 0.
    address = place if fields.is_empty else address
    modes = 0, 0, L2_PROMOTION, 0  # neither interleaved nor swizzled; zeros outside
    error = encode(place, number, rank, address, sizes, strides, box, steps, *modes)
    if error:
        raise CallError(f"the driver refuses a tensor map of {name}: CUDA error {error}")
    return bytes(memory)


@cache
def _encode() -> Callable[..., int]:
    """``cuTensorMapEncodeTiled``."""
    try:
        function = ctypes.CDLL(LIBRARY).cuTensorMapEncodeTiled
    except OSError as failure:
        raise CannotCheck(f"the NVIDIA driver's library can't be loaded: {failure}") from None
    except AttributeError:
        raise CannotCheck(
            "the NVIDIA driver is older than CUDA 12, whose tensor maps the kernel needs"
        ) from None
    pointer, number = ctypes.c_void_p, ctypes.c_int
    arrays = (pointer,) * 4
    function.argtypes = (pointer, number, ctypes.c_uint, pointer, *arrays, *(number,) * 4)
    function.restype = number
    return function
