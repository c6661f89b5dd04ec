"""Tensor maps in the text: what the header says of them, and how the launcher encodes them."""

from __future__ import annotations

from gemmgen.emit.ctext import c_text
from gemmgen.emit.views import View
from gemmgen.ir import names
from gemmgen.ir.expr import Binary, Expr, Int, Var, Wide
from gemmgen.ir.interface import Interface, Param
from gemmgen.ir.lowered import LoweredKernel
from gemmgen.ir.tensor_map import DATA_TYPES, TensorMap, map_name


def map_lines(interface: Interface) -> list[str]:
    """What a caller without the launcher encodes: a line a map, between what all have in common."""
    if not interface.maps:
        return []
    return [
        "tensor maps (cuTensorMapEncodeTiled; the innermost dimension first, strides in bytes):",
        *(f"    {_line(interface, one)}" for one in interface.maps),
        "    neither interleaved nor swizzled, ↵L2 promotion 256B, element strides 1, "
        "zeros outside",
    ]


def encoded_views(kernel: LoweredKernel) -> list[View]:
    """What ``launcher.j2`` sees of each map."""
    return [_encoded(kernel, one) for one in kernel.interface.maps]


def type_notes(interface: Interface) -> list[str]:
    """What the numbers of the maps' element types mean, in a line; none without maps."""
    found = dict.fromkeys(_element(interface, one) for one in interface.maps)
    notes = [f"{number}: CU_TENSOR_MAP_DATA_TYPE_{kind}" for number, _, kind in found]
    return [", ".join(notes)] if notes else []


def _line(interface: Interface, tensor_map: TensorMap) -> str:
    dimensions = interface.map_dimensions(tensor_map)
    _, item, kind = _element(interface, tensor_map)
    sizes = " x ".join(one.size for one in dimensions)
    strides = ", ".join(f"{item} * {one.stride}" for one in dimensions if one.stride is not None)
    box = " x ".join(map(str, tensor_map.box))
    return f"{tensor_map.tensor}: {kind}, {sizes}, ↵strides {strides}, ↵box {box}"


def _encoded(kernel: LoweredKernel, tensor_map: TensorMap) -> View:
    interface = kernel.interface
    dimensions = interface.map_dimensions(tensor_map)
    number, item, _ = _element(interface, tensor_map)
    letters = _param(interface, tensor_map).indices[::-1]
    strides = [Var(one.stride) for one in dimensions if one.stride is not None]
    sides = zip(letters, tensor_map.box, strict=True)
    return {
        "map": map_name(tensor_map.tensor),
        "tensor": tensor_map.tensor,
        "number": number,
        "sizes": [one.size for one in dimensions],
        "strides": [c_text(Binary("*", Wide(Int(item)), stride)) for stride in strides],
        "box": [c_text(_side(kernel, letter, side)) for letter, side in sides],
    }


def _element(interface: Interface, tensor_map: TensorMap) -> tuple[int, int, str]:
    """The number of a tensor's elements' type, their bytes, and the type's name."""
    param = _param(interface, tensor_map)
    number, name = DATA_TYPES[param.dtype]
    return number, param.item, name


def _param(interface: Interface, tensor_map: TensorMap) -> Param:
    (param,) = (param for param in interface.tensors if param.name == tensor_map.tensor)
    return param


def _side(kernel: LoweredKernel, letter: str, side: int) -> Expr:
    """A side of a box: the extent of the tile, if it is that constant."""
    tile = names.block(letter)
    known = {constant.name: constant.value for constant in kernel.constants}
    return tile if known.get(tile.name) == side else Int(side)
