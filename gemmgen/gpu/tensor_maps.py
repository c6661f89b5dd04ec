"""Launches of kernels that take tensor maps: the driver encodes them, and gets them by value.

A map depends on a tensor's address, extents, leading dimension and strides.  All but the address
are a ``Starter``'s, which keeps the maps that it has launched with; a prepared launch has its own.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence

from gemmgen.base.errors import CallError
from gemmgen.gpu.driver import MAP_BYTES, Loaded, Prepared, Starter, Value, aligned
from gemmgen.gpu.driver_library import driver_function
from gemmgen.ir.dtypes import DTYPES
from gemmgen.ir.tensor_map import MapFields

_POINTER, _INT = ctypes.c_void_p, ctypes.c_int
_TYPES = (_POINTER, _INT, ctypes.c_uint, *(_POINTER,) * 5, *(_INT,) * 4)
_KEPT = 1024  # maps that a starter keeps


class MappedStarter(Starter):
    """Launches with fixed blocks and integers; ``extents`` has these by their names."""

    __slots__ = ("_fields", "_known")

    def __init__(
        self, loaded: Loaded, blocks: int, integers: tuple[int, ...], extents: Mapping[str, int]
    ) -> None:
        super().__init__(loaded, blocks, integers)
        interface = loaded.interface
        places = {param.name: at for at, param in enumerate((*loaded.tensors, *interface.scratch))}
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
    encode = driver_function("cuTensorMapEncodeTiled", "tensor maps", *_TYPES)
    memory = aligned(MAP_BYTES)
    place = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    rank = len(fields.sizes)
    sizes = (ctypes.c_uint64 * rank)(*fields.encoded_sizes)
    strides = (ctypes.c_uint64 * rank)(*fields.strides)
    box = (ctypes.c_uint32 * rank)(*fields.box)
    steps = (ctypes.c_uint32 * rank)(*(1,) * rank)
    number, _ = DTYPES[fields.dtype].tensor_map
    # Nothing is read of a tensor without elements, but no map is of address 0.
    address = place if fields.is_empty else address
    error = encode(place, number, rank, address, sizes, strides, box, steps, *fields.modes)
    if error:
        raise CallError(f"the driver refuses a tensor map of {name}: CUDA error {error}")
    return bytes(memory)
