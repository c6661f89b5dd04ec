"""Tensor maps in the text: what the header says of them, and how the launcher encodes them."""

from __future__ import annotations

from gemmgen.emit.ctext import c_text
from gemmgen.emit.printing import printed
from gemmgen.ir import names
from gemmgen.ir.dtypes import DTYPES
from gemmgen.ir.expr import Expr, Int, Var, Wide
from gemmgen.ir.interface import Interface
from gemmgen.ir.lowered import LoweredKernel
from gemmgen.ir.param import Param
from gemmgen.ir.tensor_map import SWIZZLES, TensorMap, map_name


def map_lines(interface: Interface) -> list[str]:
    """What a caller without the launcher encodes: a line a map, between what all have in common."""
    if not interface.maps:
        return []
    return [
        "tensor maps (cuTensorMapEncodeTiled; the innermost dimension first, strides in bytes):",
        *(f"    {_line(interface, one)}" for one in interface.maps),
        f"    {_plain(interface)}, ↵L2 promotion 128B, element strides 1, zeros outside",
    ]


def encoding_calls(kernel: LoweredKernel) -> list[str]:
    """The launcher's calls that encode the kernel's maps."""
    return [_encoding(kernel, one) for one in kernel.interface.maps]


def maps_by_rank(interface: Interface) -> list[tuple[int, list[str]]]:
    """The launcher's variables that are maps, in a list for each rank."""
    found = dict[int, list[str]]()
    for one in interface.maps:
        found.setdefault(len(one.box), []).append(map_name(one.tensor))
    return [*found.items()]


def enum_numbers(interface: Interface) -> list[str]:
    """The constants of the maps' element types and swizzles, ``gg_BFLOAT16 = 9``."""
    elements = (_element(interface, one) for one in interface.maps)
    found = {_constant(kind): number for number, _, kind in elements}
    if has_swizzles(interface):
        found |= {_swizzle(one.swizzle): SWIZZLES[one.swizzle] for one in interface.maps}
    return [f"{name} = {number}" for name, number in found.items()]


def _constant(kind: str) -> str:
    return f"gg_{kind}"


def _swizzle(row: int) -> str:
    """The constant of the swizzle of rows of ``row`` bytes; 0: not swizzled."""
    return f"gg_SWIZZLE_{f'{row}B' if row else 'NONE'}"


def has_swizzles(interface: Interface) -> bool:
    """Whether some map is swizzled, so that the launcher says of each whether it is."""
    return any(one.swizzle for one in interface.maps)


def _line(interface: Interface, tensor_map: TensorMap) -> str:
    dimensions = interface.map_dimensions(tensor_map)
    _, item, kind = _element(interface, tensor_map)
    sizes = " x ".join(one.size_text for one in dimensions)
    strides = ", ".join(f"{item} * {one.stride}" for one in dimensions if one.stride is not None)
    box = " x ".join(map(str, tensor_map.box))
    swizzle = f", ↵swizzle {tensor_map.swizzle}B" if tensor_map.swizzle else ""
    return f"{tensor_map.tensor}: {kind}, {sizes}, ↵strides {strides}, ↵box {box}{swizzle}"


def _plain(interface: Interface) -> str:
    """What none of the maps is, or none but those that say so."""
    swizzled = [one.swizzle for one in interface.maps if one.swizzle]
    if len(swizzled) == len(interface.maps):
        return "not interleaved"
    return f"neither interleaved nor {'otherwise ' if swizzled else ''}swizzled"


def _encoding(kernel: LoweredKernel, tensor_map: TensorMap) -> str:
    interface, tensor = kernel.interface, tensor_map.tensor
    dimensions = interface.map_dimensions(tensor_map)
    _, item, kind = _element(interface, tensor_map)
    letters = _letters(interface, tensor_map)
    strides = [Var(one.stride) for one in dimensions if one.stride is not None]
    shared = _shared_along(kernel, letters)
    boxes = (*letters, *("",) * (len(tensor_map.box) - len(letters)))
    sides = zip(boxes, tensor_map.box, strict=True)
    lists = (
        [one.size_in_c for one in dimensions],
        [c_text(Wide(Int(item)) * stride) for stride in strides],
    )
    own: dict[str, Var] = {letters[0]: names.atom_width(tensor)}
    if _param(interface, tensor_map).written:
        own |= {letter: names.lanes(letter) for letter in letters[1:2]}
    box = [c_text(_side(kernel, letter, side, shared, own.get(letter))) for letter, side in sides]
    swizzle = [_swizzle(tensor_map.swizzle)] if has_swizzles(interface) else []
    view = {"map": map_name(tensor), "type": _constant(kind), "tensor": tensor}
    return printed("calls/encode_map.j2", {**view, "lists": lists, "box": box, "swizzles": swizzle})


def _element(interface: Interface, tensor_map: TensorMap) -> tuple[int, int, str]:
    """The number of a tensor's elements' type, their bytes, and the type's name."""
    param = _param(interface, tensor_map)
    number, name = DTYPES[param.dtype].tensor_map
    return number, param.item, name


def _param(interface: Interface, tensor_map: TensorMap) -> Param:
    return interface.mapped(tensor_map)


def _letters(interface: Interface, tensor_map: TensorMap) -> tuple[str, ...]:
    """Of a matrix, innermost first; of planes those of what is split."""
    param = _param(interface, tensor_map)
    source = param.planes.source if param.planes else param.name
    return next(p.indices[::-1] for p in interface.tensors if p.name == source)


def _shared_along(kernel: LoweredKernel, letters: tuple[str, ...]) -> Var | None:
    """The number of blocks of a cluster that share a tile with these letters, if any do."""
    own = {names.block(letter) for letter in letters}
    launch = zip(kernel.launch.tiles, kernel.launch.cluster, kernel.interface.cluster, strict=True)
    others = (name for tile, name, count in launch if count > 1 and tile not in own)
    return next(others, None) if kernel.interface.cluster else None


def _side(
    kernel: LoweredKernel, letter: str, side: int, shared: Var | None, own: Var | None
) -> Expr:
    """A side of a box: the extent of the tile, of a block's share of it, or of what ``own`` names
    (an atom column, a warp's rows of the output), if it is that."""
    if not letter:
        return Int(side)
    tile = names.block(letter)
    known = {constant.name: constant.value for constant in kernel.constants}
    extent = known.get(tile.name)
    if extent == side:
        return tile
    if shared is not None and extent == side * known[shared.name]:
        return tile / shared
    return own if own is not None and known.get(own.name) == side else Int(side)
