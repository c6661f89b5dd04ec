"""The tensor maps that a launcher encodes, compared with the interface."""

from __future__ import annotations

from collections.abc import Mapping

from gemmgen.ir.dtypes import DTYPES
from gemmgen.ir.interface import Interface
from gemmgen.ir.tensor_map import TensorMap
from gemmgen.sim.launcher_calls import EncodedMap

Source = tuple[int, tuple[int, ...], tuple[int, ...]]
"""What a map is encoded from: an address, sizes and strides."""


class KeptMaps:
    """The maps that a launcher keeps from call to call: each is encoded again only if its source is
    not that of the last encoding that the driver did not refuse."""

    def __init__(self, interface: Interface):
        self._interface = interface
        self._kept = dict[str, Source]()

    def encodings(self, values: Mapping[str, int], refused: int | None = None) -> int:
        """How many maps a call with these ``values`` encodes; encoding ``refused`` (from 0) is the
        last one, which the driver refuses."""
        count = 0
        for one in self._interface.maps:
            fields = self._interface.map_fields(one, values)
            source = values[one.tensor], fields.sizes, fields.strides
            if self._kept.get(one.tensor) == source:
                continue
            count += 1
            if refused == count - 1:
                break
            self._kept[one.tensor] = source
        return count


def maps_difference(
    interface: Interface, values: Mapping[str, int], encoded: tuple[EncodedMap | None, ...]
) -> str | None:
    """What is wrong with the ``encoded`` maps of a call with these ``values`` (extents, leading
    dimensions, strides, addresses), in words; None if nothing is."""
    for one, got in zip(interface.kernel_maps, encoded, strict=True):
        wrong = _difference(interface, one, values, got)
        if wrong is not None:
            return f"passes a tensor map of {one.tensor} {wrong}"
    return None


def _difference(
    interface: Interface, tensor_map: TensorMap, values: Mapping[str, int], got: EncodedMap | None
) -> str | None:
    if got is None:
        return "that was not encoded"
    fields = interface.map_fields(tensor_map, values)
    address = values[tensor_map.tensor]
    if got.address != address and not fields.is_empty:
        return f"with address {got.address:#x}, not {address:#x}"
    number, _ = DTYPES[fields.dtype].tensor_map
    ones = (1,) * len(fields.sizes)
    wanted: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
        "sizes": (fields.encoded_sizes, got.sizes),
        "strides": (fields.strides, got.strides),
        "a box": (fields.box, got.box),
        "element strides": (ones, got.steps),
        "an element type": ((number,), (got.type,)),
        "interleaving, swizzle, L2 promotion and fill": (fields.modes, got.modes),
    }
    for what, (want, found) in wanted.items():
        if want != found:
            return f"with {what} of {_spelled(found)}, not {_spelled(want)}"
    return None


def _spelled(numbers: tuple[int, ...]) -> str:
    return " x ".join(map(str, numbers))
