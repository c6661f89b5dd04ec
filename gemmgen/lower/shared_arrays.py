"""A kernel's arrays in shared memory: their extents by name and in numbers, with stages and pads;
and whether they are declared statically or lie in dynamic shared memory."""

from __future__ import annotations

from gemmgen.ir import names
from gemmgen.ir.atoms import ATOMS
from gemmgen.ir.blocked_letters import block
from gemmgen.ir.boxes import lands_at
from gemmgen.ir.buffers import Buffer, Space
from gemmgen.ir.expr import Expr, Int
from gemmgen.ir.lowered import SharedArray, ends_at
from gemmgen.ir.simplify import add, div, mul
from gemmgen.ir.target import STATIC_SHARED
from gemmgen.lower import bounds
from gemmgen.lower.context import Context
from gemmgen.lower.thread_map import slice_rows


def shared_arrays(context: Context) -> tuple[SharedArray, ...]:
    """One for each tile in shared memory."""
    tiles = (b for b in context.kernel.buffers if b.space is Space.SHARED)
    return tuple(_array(context, tile) for tile in tiles)


def static_or_dynamic(arrays: tuple[SharedArray, ...], barriers: int) -> tuple[int, int]:
    """Bytes of static and of dynamic shared memory.

    The arrays are dynamic if there is more than a kernel may declare, and each then begins where
    any of them may; this many bytes of ``barriers`` are static.
    """
    total = sum(array.bytes for array in arrays)
    units = zip(arrays, ends_at(arrays), strict=True)
    aligned = total + sum(-array.bytes % unit for array, unit in units)
    if aligned + barriers <= STATIC_SHARED:
        return total + barriers, 0
    return barriers, aligned


def row(context: Context, tile: Buffer) -> Expr:
    """Elements from the begin of a row to the begin of the next, by name: ``BN + B_PAD``."""
    return add(_extent(context, tile, tile.letters[-1]), context.pad(tile))


def shape(context: Context, tile: Buffer) -> tuple[Expr, ...]:
    """The extents of one stage, by name; of one in atom columns ``[BK / A_ATOM][BM][A_ATOM]``."""
    outer, inner = tile.letters
    rows = add(_extent(context, tile, outer), Int(tile.spare))
    if tile.atom_width:
        atom_width = names.atom_width(tile.tensor)
        return (div(_extent(context, tile, inner), atom_width), rows, atom_width)
    return (rows, row(context, tile))


def _array(context: Context, tile: Buffer) -> SharedArray:
    sizes = (tile.atom_column_rows, tile.row)
    sizes = (tile.atom_columns, *sizes) if tile.atom_width else sizes
    extents = shape(context, tile)
    if tile.parts > 1:
        sizes, extents = (tile.parts, *sizes), (names.SPLIT, *extents)
    if tile.stages > 1:
        sizes, extents = (tile.stages, *sizes), (context.stages(tile), *extents)
    boxed = {copy.dst for copy in context.boxed_copies}
    boxed |= {context.boxed_outward.src} if context.boxed_outward else set()
    aligned = lands_at(tile) if tile.name in boxed else ATOMS[context.kernel.spread.atom].aligned
    return SharedArray(tile.name, tile.dtype, extents, sizes, tile.origins, aligned)


def _extent(context: Context, tile: Buffer, letter: str) -> Expr:
    """The whole tile's extent; of a slice, a piece for each warp, or a row for each thread."""
    if block(letter) > 1:
        return Int(tile.extent(letter))
    if tile.extent(letter) == bounds.tile(context, letter):
        return names.block(letter)
    if context.kernel.spread.has_coordinates:
        return slice_rows(context, letter)
    warps = div(names.block(letter), names.warp(letter))
    return mul(warps, names.instruction(letter))
