"""Calls of a launcher that keeps its tensor maps: each map must be that of the call, and is encoded
again only if its address, a size or a stride differs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from gemmgen.ir.interface import Interface
from gemmgen.ir.tensor_map import ALIGNMENT
from gemmgen.sim.launcher_calls import LauncherCall

SYSTEM_DRIVER_MISMATCH = 803
"""An error that the stub of the driver returns."""
_HIGH, _FAR = 1 << 32, 1 << 36
"""Bytes between addresses: they differ in their upper halves alone, and are addresses of no other
call."""
Values = Mapping[str, int | float]


def calls_without_function(
    interface: Interface, launch: LauncherCall
) -> Iterator[tuple[str, LauncherCall]]:
    """Calls in which the driver's function is missing; it is asked for until it is found."""
    if interface.maps:
        missing = replace(launch, entry_error=SYSTEM_DRIVER_MISMATCH)
        yield "without a driver", missing
        yield "with a driver that encodes no tensor maps", replace(launch, no_entry=True)


def calls_of_maps(interface: Interface, launch: LauncherCall) -> Iterator[tuple[str, LauncherCall]]:
    """Calls that differ from the one before in nothing, and in one value alone, which may be no
    extent and an extent of 1; then calls around the driver's refusal of each map."""
    if not interface.maps:
        return
    yield "before its maps change", launch
    yield "with the maps of its last call", launch
    values = launch.values
    for name, step in _changes(interface, values):
        changed = {**values, name: int(values[name]) + step}
        if not interface.violated({n: int(v) for n, v in changed.items() if isinstance(v, int)}):
            values = changed
            yield f"with another {name} alone", replace(launch, values=values)
    for name in sorted({*interface.extent_names()} - {*interface.shaping()}):
        for size in (0, 0, interface.divisor(name)):
            yield f"{name} = {size}, again", replace(launch, values={**values, name: size})
    elsewhere = 0
    for number, one in enumerate(interface.maps):
        where = f"where the tensor map of {one.tensor} is refused"
        for then in ("again", "with the maps before"):
            before, elsewhere = elsewhere, elsewhere + _FAR
            refused = replace(launch, values=_moved(interface, values, elsewhere))
            yield where, replace(refused, map_error=SYSTEM_DRIVER_MISMATCH, refused_map=number)
            at = elsewhere if then == "again" else before
            yield f"{where}, then {then}", replace(launch, values=_moved(interface, values, at))


def _changes(interface: Interface, values: Values) -> Iterator[tuple[str, int]]:
    """The values that maps depend on, and by how much they change.  Strides come first, so that
    extents have room in rows."""
    for one in interface.maps:
        align = max(ALIGNMENT, interface.mapped(one).align)
        yield from ((one.tensor, align), (one.tensor, _HIGH))
    dimensions = [each for one in interface.maps for each in interface.map_dimensions(one)]
    given = {param.name for param in interface.params}
    strides = [each.stride for each in dimensions if each.stride in given and each.stride]
    for name in dict.fromkeys(strides):
        yield name, interface.divisor(name)
    for name in dict.fromkeys(each.size for each in dimensions if each.size in given):
        step = interface.divisor(name)
        yield name, -step if values[name] > step else step


def _moved(interface: Interface, values: Values, distance: int) -> Values:
    """The values with all tensors that have maps elsewhere."""
    mapped = [one.tensor for one in interface.maps]
    return {**values, **{name: int(values[name]) + distance for name in mapped}}
