"""The kernel of ``Split``, and its launches: a block has part of a row, and a thread some elements
of it, each as many threads from the next as the block has.

x0 = bf16(x), x1 = bf16(x - x0), x2 = bf16(x - x0 - x1) go to a plane each.  What is after a row in
its last 16 bytes no thread reads: the map of the planes ends with the row.
"""

from __future__ import annotations

from gemmgen.ir.control import Assign, Block, Define, For, If
from gemmgen.ir.expr import Binary, Element, Expr, Int, Var, Wide
from gemmgen.ir.interface import Interface, PrePass
from gemmgen.ir.lowered import LaunchNames, LoweredKernel
from gemmgen.ir.param import Param
from gemmgen.ir.planes import PRE_PASS, WRITTEN, unit
from gemmgen.ir.thread_code import Node
from gemmgen.lower.context import X
from gemmgen.lower.types import computable, storable

_ROWS, _COLUMNS, _SOURCE, _PITCH, _PARTS = map(Var, ("rows", "columns", "x", "ldx", WRITTEN))
_ROW, _COLUMN, _PART, _REST, _AT = map(Var, ("row", "column", "part", "rest", "at"))
_BLOCKS = Var("row_blocks")
THREADS, EACH = 256, 4
"""Threads of its blocks, and the elements of a row that each of them splits."""
COLUMNS = THREADS * EACH


def launches(kernel: LoweredKernel, interface: Interface) -> tuple[PrePass, ...]:
    """The launches of ``kernel`` before a kernel with this ``interface``: one for each tensor."""
    found = ((param, param.planes) for param in interface.split)
    return tuple(
        PrePass(
            kernel.interface,
            (own.rows, own.columns, own.source, dict(interface.pitch)[own.source], param.name),
        )
        for param, own in found
        if own is not None
    )


def splitting_kernel(interface: Interface) -> LoweredKernel:
    """The kernel that writes the parts that a kernel with this ``interface`` reads."""
    first = interface.split[0]
    source = next(p for p in interface.tensors if first.planes and p.name == first.planes.source)
    assert first.planes is not None
    params = (
        Param(_ROWS.name, "extent"),
        Param(_COLUMNS.name, "extent"),
        Param(_SOURCE.name, "tensor", ("r", "c"), dtype=source.dtype),
        Param(_PITCH.name, "ld"),
        Param(_PARTS.name, "tensor", ("p", "r", "c"), written=True, read=False, dtype=first.dtype),
    )
    own = Interface(
        PRE_PASS.format(kernel=interface.name),
        params,
        (THREADS, 1),
        ((_ROWS.name, 1), (_COLUMNS.name, COLUMNS)),
        (),
        0,
        0,
        ((_SOURCE.name, _PITCH.name),),
        extents=(("r", _ROWS.name), ("c", _COLUMNS.name)),
    )
    body = _body(first, first.planes.count)
    launch = LaunchNames(count=Int(THREADS))
    return LoweredKernel(own, (), (), (), body, THREADS, launch=launch)


def _body(param: Param, count: int) -> tuple[Node, ...]:
    blocks = (_COLUMNS - 1) / COLUMNS + 1
    block = Var("blockIdx.x")
    first = block % _BLOCKS * COLUMNS + X
    column = first + Var("e") * THREADS
    here = If[Node](Binary("<", _COLUMN, _COLUMNS), _parts(param, count))
    each = (Define(_COLUMN.name, column), here)
    return (
        Define(_BLOCKS.name, blocks),
        Define(_ROW.name, block / _BLOCKS),
        Block(
            f"x0 = {param.dtype}(x), x1 = {param.dtype}(x - x0) and so on, a plane each",
            (),
            (For[Node]("e", Int(0), Int(EACH), Int(1), each, unroll=True),),
        ),
    )


def _parts(param: Param, count: int) -> tuple[Node, ...]:
    """An element's parts to their planes."""
    row = Wide(_ROW) * _PITCH
    whole = Element(_SOURCE.name, (row + _COLUMN,))
    size = Int(unit(param.dtype))
    rows = Wide(_PART) * _ROWS + _ROW
    columns = ((_COLUMNS - 1) / size + 1) * size
    place = Element(_PARTS.name, (rows * columns + _COLUMN,))
    stored: Expr = storable(_REST, param.dtype)
    rounded = computable(stored, param.dtype)
    steps = (
        Assign(place, stored),
        Assign(_REST.name, _REST - rounded),
    )
    return (
        Define(_REST.name, whole, "float", mutable=True),
        For[Node](_PART.name, Int(0), Int(count), Int(1), steps, unroll=True),
    )
