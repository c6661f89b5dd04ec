"""stmatrix: lanes whose accumulators are those of tensor cores write them to a slice of the output
as matrices of 8 x 8, a row of 16 bytes at a time.

A row of each lane's micro-tile is a row of such matrices: the pieces of ``FragmentLayout`` that the
atom states, each lane with the two neighbours that the instruction takes from it. It is ldmatrix
the other way round.
"""

from __future__ import annotations

from collections.abc import Iterator

from gemmgen.ir import names
from gemmgen.ir.atoms import ATOMS
from gemmgen.ir.buffers import slice_pieces
from gemmgen.ir.control import Define, For
from gemmgen.ir.dtypes import BYTES
from gemmgen.ir.edit import copy_outward
from gemmgen.ir.expr import Element, Expr, Int, Var
from gemmgen.ir.instruction import instruction
from gemmgen.ir.lane_matrices import MATRIX, ROWS, row_of
from gemmgen.ir.output_slices import StageSlice
from gemmgen.ir.simplify import add, div, mod, mul
from gemmgen.ir.thread_code import Node, RegisterArray
from gemmgen.lower import addresses, bounds, epilogue, epilogue_store, warps
from gemmgen.lower.context import LANE, Context
from gemmgen.lower.thread_map import warp_rows
from gemmgen.lower.vectors import store_width

COUNTS = (4, 2)
"""Matrices that one instruction stores; one at a time is as many as there are pairs."""


def together(context: Context, node: StageSlice) -> int | None:
    """How many matrices of a row of the micro-tile one instruction stores; None if lanes hold no
    such matrices, if there is but one, or if rows of the slice may begin anywhere."""
    outward, slice_ = copy_outward(context.kernel), context.buffer(node.map.dst)
    layout = ATOMS[context.kernel.spread.atom].accumulators
    if layout is None or (layout.lane, layout.register[:1]) != (MATRIX.lane, MATRIX.register):
        return None
    pairs = slice_.letters[1] == context.letters[1] and BYTES[slice_.dtype] == 2
    if not pairs or store_width(context.kernel, node.map) != MATRIX.registers:
        return None
    if outward is None or outward.mode != "tma":
        return None
    pieces = context.axis(slice_.letters[1]).pieces
    return next((count for count in COUNTS if pieces % count == 0), None)


def transposed(context: Context, node: StageSlice) -> int | None:
    """How many matrices along the slice's rows one instruction stores where a lane's two
    neighbours lie along its columns; None as ``together`` has it."""
    outward, slice_ = copy_outward(context.kernel), context.buffer(node.map.dst)
    outer, inner = slice_.letters
    layout = ATOMS[context.kernel.spread.atom].accumulators
    if layout is None or (layout.lane, layout.register[:1]) != (MATRIX.lane, MATRIX.register):
        return None
    if not slice_pieces(context.kernel.spread, outer) or BYTES[slice_.dtype] != 2:
        return None
    if outward is None or outward.mode != "tma":
        return None
    axis = context.axis(inner)
    return next((count for count in COUNTS if axis.pieces // axis.rounds % count == 0), None)


def stage(context: Context, node: StageSlice) -> tuple[Node, ...]:
    """The lanes' own row of the slice, by matrices if it can be; what is outside C is zero, or
    anything."""
    count = together(context, node)
    if count is None:
        count = transposed(context, node)
        return _transposed(context, node, count) if count else epilogue_store.stage(context, node)
    outer, inner = context.buffer(node.map.dst).letters
    register, width = Var(f"reg_{inner}"), context.width(node.map.dst)
    each = mul(Int(count), width)
    guard = bounds.inside(context, outer, Var(outer))
    computed = bounds.guarded(guard, (_each_matrix(context, node, count),))
    dtype = context.buffer(node.map.dst).dtype
    sizes = (count * MATRIX.registers,)
    out = RegisterArray(epilogue.OUT, dtype, (each,), sizes, zero=_may_skip(context), wide=True)
    source = Element(epilogue.OUT, (Int(0),))
    place = _place(context, node, count)
    stored = instruction("stmatrix", place, source, count=count, dtype=dtype)
    stop = names.registers(inner)
    body = (out, *computed, stored)
    columns = For(register.name, Int(0), stop, each, body, unroll=True)
    rows = epilogue.indices(context, {outer: node.row}, (outer,))
    return (*_named_row(context, count), *epilogue.with_indices(rows, (columns,)))


def _each_matrix(context: Context, node: StageSlice, count: int) -> Node:
    """The lane's two elements of each of the matrices that are stored at once."""
    outer, inner = context.buffer(node.map.dst).letters
    width = context.width(node.map.dst)
    matrix = Var(f"matrix_{inner}")
    first = mul(matrix, width)
    registers: dict[str, Expr] = {outer: node.row, inner: add(Var(f"reg_{inner}"), first)}

    def total(e: Expr) -> Expr:
        return addresses.sum_at(context, registers | {inner: add(registers[inner], e)})

    own = epilogue.Own(total, kept=first)
    along = epilogue.indices(context, registers, (inner,), MATRIX.registers)
    body = epilogue.with_indices(along, epilogue.neighbours(context, node.map, own))
    return For(matrix.name, Int(0), Int(count), Int(1), body, unroll=True)


def _transposed(context: Context, node: StageSlice, count: int) -> tuple[Node, ...]:
    """The lanes' own pieces of the slice: a matrix has eight rows of it, and the lane two elements
    of a column."""
    slice_, spread = context.buffer(node.map.dst), context.kernel.spread
    outer, inner = slice_.letters
    pieces, width = slice_pieces(spread, outer), addresses.width(context, outer)
    number = Var(f"piece_{outer}") if pieces > 1 else Int(0)
    register, dtype = Var(f"reg_{inner}"), slice_.dtype
    sizes = (count * MATRIX.registers,)
    out = RegisterArray(
        epilogue.OUT, dtype, (mul(Int(count), width),), sizes, zero=_may_skip(context), wide=True
    )
    computed = _each_column(context, node, number, count)
    row, column = Var(f"slice_{outer}"), Var(f"slice_{inner}")
    index: dict[str, Expr] = {
        outer: add(row, mul(number, Int(ROWS))),
        inner: addresses.of_thread(context, inner, column, register),
    }
    size = row_of(dtype)
    below = {column.name: count * size} if context.axis(inner).warps == 1 else {}
    steps = {column.name: size, register.name: count}
    place = addresses.in_shared(context, slice_, node.stage, index, steps=steps, below=below)
    stored = instruction(
        "stmatrix",
        place,
        Element(epilogue.OUT, (Int(0),)),
        count=count,
        dtype=dtype,
        transposed=True,
    )
    body: tuple[Node, ...] = (out, computed, stored)
    stop = names.registers(inner)
    body = (For(register.name, Int(0), stop, Int(count), body, unroll=True),)
    if pieces > 1:
        assert isinstance(number, Var)
        body = (For(number.name, Int(0), Int(pieces), Int(1), body, unroll=True),)
    return (*_named_column(context, count), *body)


def _each_column(context: Context, node: StageSlice, number: Expr, count: int) -> Node:
    """The lane's two elements of each of the matrices that are stored at once."""
    outer, inner = context.buffer(node.map.dst).letters
    matrix, e = Var(f"matrix_{inner}"), context.element
    width = addresses.width(context, outer)
    registers: dict[str, Expr] = {
        outer: add(node.row, mul(number, width), e),
        inner: add(Var(f"reg_{inner}"), matrix),
    }
    own = epilogue.Own(
        lambda _: addresses.sum_at(context, registers),
        place=lambda _: Element(epilogue.OUT, (add(mul(matrix, width), e),)),
    )
    at: dict[str, Expr] = {letter: Var(letter) for letter in context.letters}
    one = epilogue.element(context, node.map, own, at)
    first = epilogue_store.first_of_piece(context, outer, node.row, number)
    guarded = bounds.guarded(bounds.inside(context, outer, Var(outer)), one)
    body = epilogue.with_indices((Define(outer, add(first, e)),), guarded)
    pair = For[Node](e.name, Int(0), width, Int(1), body, unroll=True)
    guarded = bounds.guarded(bounds.inside(context, inner, Var(inner)), (pair,))
    along = epilogue.indices(context, registers, (inner,))
    columns = epilogue.with_indices(along, guarded)
    return For(matrix.name, Int(0), Int(count), Int(1), columns, unroll=True)


def _named_column(context: Context, count: int) -> Iterator[Define]:
    """The row of the slice that a lane names to stmatrix, and where it begins."""
    outer, inner = context.buffer(context.output).letters
    of_warp = warps.coordinates(context)
    rows = {outer: warp_rows(context, outer), inner: warps.apart(context, inner)}
    own = {outer: mod(LANE, Int(ROWS)), inner: matrix_of_lane(context, count)}
    for letter in (outer, inner):
        first = Int(0) if context.axis(letter).warps == 1 else mul(of_warp[letter], rows[letter])
        yield Define(f"slice_{letter}", add(first, own[letter]))


def _may_skip(context: Context) -> bool:
    """Whether elements outside C are not computed."""
    guards = (bounds.inside(context, letter, Var(letter)) for letter in context.letters)
    return any(guard is not None for guard in guards)


def _named_row(context: Context, count: int) -> Iterator[Define]:
    """The row of the slice that a lane names to stmatrix, and where the first of them begins."""
    outer, inner = context.letters
    of_warp = warps.coordinates(context)
    sizes = {outer: names.lanes(outer), inner: names.warp(inner)}
    own = {outer: mod(LANE, Int(ROWS)), inner: matrix_of_lane(context, count)}
    for letter in (outer, inner):
        first = Int(0) if context.axis(letter).warps == 1 else mul(of_warp[letter], sizes[letter])
        yield Define(f"slice_{letter}", add(first, own[letter]))


def matrix_of_lane(context: Context, count: int) -> Expr:
    """The offset of the matrix whose row a lane addresses, among those that are stored at once."""
    number = div(LANE, Int(ROWS))
    row = Int(row_of(context.buffer(context.output).dtype))
    return mul(number if count == COUNTS[0] else mod(number, Int(count)), row)


def _place(context: Context, node: StageSlice, count: int) -> Element:
    """The begin of the row that a lane names."""
    slice_ = context.buffer(node.map.dst)
    outer, inner = slice_.letters
    row, column = Var(f"slice_{outer}"), Var(f"slice_{inner}")
    size = row_of(slice_.dtype)
    at = addresses.of_thread(context, inner, column, Var(f"reg_{inner}"), MATRIX.registers)
    below = {column.name: count * size} if context.axis(inner).warps == 1 else {}
    index: dict[str, Expr] = {outer: row, inner: at}
    steps = {column.name: size, f"reg_{inner}": count * MATRIX.registers}
    return addresses.in_shared(context, slice_, node.stage, index, steps=steps, below=below)


LOWER = {StageSlice: stage}
