"""The kernels of ``Split``, and their launches.

x0 = bf16(x), x1 = bf16(x - x0), x2 = bf16(x - x0 - x1) go to a plane each.  What is after a row in
its last 16 bytes no thread reads: the map of the planes ends with the row.

Without scales a block has part of a row, and a thread some elements of it, each as many threads
from the next as the block has.  ``scaled_planes`` has the kernels that scale first.
"""

from __future__ import annotations

from gemmgen.ir.control import Block, Define, For, If
from gemmgen.ir.expr import Binary, Int, Var
from gemmgen.ir.interface import Interface, PrePass
from gemmgen.ir.lowered import LaunchNames, LoweredKernel, SharedArray
from gemmgen.ir.param import Param
from gemmgen.ir.planes import COLUMNS_PRE_PASS, PRE_PASS, ROWS_PRE_PASS, SCALED
from gemmgen.ir.thread_code import Node
from gemmgen.lower import scaled_planes
from gemmgen.lower.context import X
from gemmgen.lower.element_terms import (
    COLUMN,
    COLUMNS,
    PARTS,
    PITCH,
    ROW,
    ROWS,
    SOURCE,
    element,
    note,
    stored_terms,
)

_BLOCKS = Var("row_blocks")
_THREADS, _EACH = 256, 4
"""Threads of a block, and the elements of a row that each of them splits."""
_OF_BLOCK = _THREADS * _EACH


def launch(param: Param, interface: Interface) -> PrePass:
    """The launch that writes ``param`` before a kernel with this ``interface``."""
    own = param.planes
    assert own is not None
    pitch = dict(interface.pitch)[own.source]
    scales = (own.scaled_by,) if own.scaled_by else ()
    arguments = (own.rows, own.columns, own.source, pitch, param.name, *scales)
    return PrePass(pre_pass_of(param, interface).interface, arguments)


def pre_pass_of(param: Param, interface: Interface) -> LoweredKernel:
    """The kernel that writes the parts, and the scales, that a kernel with this ``interface``
    reads."""
    own = param.planes
    assert own is not None
    source = next(p for p in interface.tensors if p.name == own.source)
    params = (
        Param(ROWS.name, "extent"),
        Param(COLUMNS.name, "extent"),
        Param(SOURCE.name, "tensor", ("r", "c"), dtype=source.dtype),
        Param(PITCH.name, "ld"),
        Param(PARTS.name, "tensor", ("p", "r", "c"), written=True, read=False, dtype=param.dtype),
    )
    name = PRE_PASS.format(kernel=interface.name)
    if not own.scaled_by:
        tiles = ((ROWS.name, 1), (COLUMNS.name, _OF_BLOCK))
        return _kernel(name, params, tiles, _THREADS, _body(param))
    scales = next(p.scales for p in interface.params if p.name == own.scaled_by)
    assert scales is not None
    letter = "r" if scales.rows else "c"
    found = Param(SCALED, "tensor", (letter,), written=True, read=False, dtype=source.dtype)
    how = scaled_planes.ROWS if scales.rows else scaled_planes.COLUMNS
    scaled = ROWS_PRE_PASS if scales.rows else COLUMNS_PRE_PASS
    name = scaled.format(kernel=interface.name)
    body, array = how.body(param), how.array
    return _kernel(name, (*params, found), (how.tile,), how.threads, body, (array,))


def _kernel(
    name: str,
    params: tuple[Param, ...],
    tiles: tuple[tuple[str, int], ...],
    threads: int,
    body: tuple[Node, ...],
    shared: tuple[SharedArray, ...] = (),
) -> LoweredKernel:
    pitch = ((SOURCE.name, PITCH.name),)
    extents = (("r", ROWS.name), ("c", COLUMNS.name))
    bytes_shared = sum(array.bytes for array in shared)
    own = Interface(name, params, (threads, 1), tiles, (), 0, bytes_shared, pitch, extents=extents)
    return LoweredKernel(own, (), (), shared, body, threads, launch=LaunchNames(count=Int(threads)))


def _body(param: Param) -> tuple[Node, ...]:
    blocks = (COLUMNS - 1) / _OF_BLOCK + 1
    block = Var("blockIdx.x")
    first = block % _BLOCKS * _OF_BLOCK + X
    column = first + Var("e") * _THREADS
    here = If[Node](Binary("<", COLUMN, COLUMNS), stored_terms(param, element()))
    each = (Define(COLUMN.name, column), here)
    return (
        Define(_BLOCKS.name, blocks),
        Define(ROW.name, block / _BLOCKS),
        Block(note(param), (), (For[Node]("e", Int(0), Int(_EACH), Int(1), each, unroll=True),)),
    )
