"""The part of a translation unit that makes tensor maps for a kernel that is run without its
launcher."""

from __future__ import annotations

from gemmgen.ir.dtypes import DTYPES
from gemmgen.ir.interface import Interface
from gemmgen.ir.param import Param
from gemmgen.ir.tensor_map import SWIZZLES, MapDimension, TensorMap


def pass_arguments(interface: Interface) -> list[str]:
    """The function that makes a launcher's arguments the kernel's; nothing if they are the same."""
    if not interface.maps or interface.before:  # what these write is there after the launcher alone
        return []
    at = {param.name: f"given[{i}]" for i, param in enumerate(interface.params)}
    maps = {one.parameter: one for one in interface.maps}
    given = ", ".join(f"arguments[{i}]" for i in range(len(interface.params)))
    lines = [f"const GgArgument given[] = {{{given}}};"]
    for i, param in enumerate(interface.kernel_params):
        if param.kind == "map":
            one = maps[param.name]
            mapped = _mapped(interface, one, param, at)
            lines.append(f"const GgMapped {one.tensor}_map = {mapped};")
            value = f"{{.pointer = gg_make_map({at[one.tensor]}.pointer, &{one.tensor}_map)}}"
        else:
            value = at[param.name]
        lines.append(f"arguments[{i}] = {value};")
    return [f'extern "C" void gg_pass_arguments(GgArgument *arguments) {{ {" ".join(lines)} }}']


def _mapped(interface: Interface, tensor_map: TensorMap, param: Param, at: dict[str, str]) -> str:
    """The initializer of a tensor's ``GgMapped``."""
    dimensions = interface.map_dimensions(tensor_map)
    wide = {p.name for p in interface.params if p.kind == "stride"}
    number, _ = DTYPES[param.dtype].tensor_map
    names = [one.stride for one in dimensions if one.stride is not None]
    sizes = ", ".join(_size(one, f"{at[one.size]}.integer") for one in dimensions)
    strides = ", ".join(
        f"{param.item}LL * {at[name]}.{'wide' if name in wide else 'integer'}" for name in names
    )
    box = ", ".join(map(str, tensor_map.box))
    swizzle = SWIZZLES[tensor_map.swizzle]
    return f"{{{number}, {len(dimensions)}, {{{sizes}}}, {{{strides}}}, {{{box}}}, {swizzle}}}"


def _size(dimension: MapDimension, extent: str) -> str:
    """The elements, or the blocks, along a dimension."""
    if dimension.block == 1:
        return extent
    return f"({extent} + {dimension.block - 1}LL) / {dimension.block}"
