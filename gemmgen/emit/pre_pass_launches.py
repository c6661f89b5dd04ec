"""The launches of pre-passes, and the planes that they leave parts of operands in."""

from __future__ import annotations

from gemmgen.emit.ctext import c_text
from gemmgen.emit.views import View
from gemmgen.ir.expr import Binary, Expr, Int, Var, Wide
from gemmgen.ir.interface import Interface, PrePass
from gemmgen.ir.param import Param
from gemmgen.ir.planes import Planes, unit


def pre_pass_view(interface: Interface) -> View:
    """The sizes of planes, and the launches that write them, as ``launcher.j2`` sees them."""
    found = ((param, param.planes) for param in interface.split)
    return {
        "planes": [_sizes(param, planes) for param, planes in found if planes],
        "before": [_launch(interface, pre_pass) for pre_pass in interface.before],
    }


def _sizes(param: Param, planes: Planes) -> View:
    size = Int(unit(param.dtype))
    pitch = _covering(Var(planes.columns), size) * size
    plane = Wide(Var(planes.rows)) * Var(planes.pitch)
    return {
        "name": param.name,
        "pitch": planes.pitch,
        "columns": c_text(pitch),
        "plane": planes.plane,
        "elements": c_text(plane),
    }


def _launch(interface: Interface, pre_pass: PrePass) -> View:
    own = pre_pass.interface
    variables = pre_pass.given({name: name for name in pre_pass.arguments})
    first, *others = ((Var(variables[extent]), size) for extent, size in own.tiles)
    blocks: Expr = Wide(_blocks(*first))
    for extent, size in others:
        blocks = Binary("*", blocks, _blocks(extent, size))
    extents = [variables[param.name] for param in own.params if param.kind == "extent"]
    contracted = next(x for x in extents if x not in interface.shaping())
    return {
        "kernel": own.name,
        "some": contracted,
        "blocks": c_text(blocks),
        "threads": own.threads,
        "arguments": [*pre_pass.arguments],
    }


def _covering(extent: Var, size: Int) -> Expr:
    return (extent + (size.value - 1)) / size


def _blocks(extent: Var, size: int) -> Expr:
    """How many blocks cover an extent that is not 0."""
    return extent if size == 1 else (extent - 1) / size + 1
