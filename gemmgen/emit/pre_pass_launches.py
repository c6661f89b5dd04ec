"""The pre-passes of a kernel that reads parts of its operands from memory."""

from __future__ import annotations

from gemmgen.emit.ctext import c_text
from gemmgen.emit.views import View
from gemmgen.ir.expr import Expr, Int, Var, Wide
from gemmgen.ir.interface import Interface
from gemmgen.ir.lowered import LoweredKernel
from gemmgen.ir.param import Param
from gemmgen.ir.planes import Planes, unit


def splitting_view(kernel: LoweredKernel) -> View:
    """The sizes of planes, and the launches that write them, as ``launcher.j2`` sees them."""
    found = kernel.interface.split
    return {
        "planes": [_sizes(param, planes) for param in found if (planes := param.planes)],
        "splits": [
            _launch(kernel.interface, pre_pass.interface, param, planes)
            for pre_pass in kernel.splitting
            for param in found
            if (planes := param.planes)
        ],
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


def _launch(interface: Interface, pre_pass: Interface, param: Param, planes: Planes) -> View:
    (_, _), (_, columns) = pre_pass.tiles
    blocks = Wide(Var(planes.rows)) * _blocks(Var(planes.columns), columns)
    contracted = next(x for x in (planes.rows, planes.columns) if x not in interface.shaping())
    return {
        "kernel": pre_pass.name,
        "some": contracted,
        "blocks": c_text(blocks),
        "threads": pre_pass.threads,
        "arguments": [
            planes.rows,
            planes.columns,
            planes.source,
            dict(interface.pitch)[planes.source],
            param.name,
        ],
    }


def _covering(extent: Var, size: Int) -> Expr:
    return (extent + (size.value - 1)) / size


def _blocks(extent: Var, size: int) -> Expr:
    """How many blocks cover an extent that is not 0."""
    return (extent - 1) / size + 1
