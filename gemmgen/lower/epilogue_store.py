"""The epilogue store through shared memory: threads write one row each of their micro-tiles to a
slice, and store its rows together.

Row ``t`` of the slice is thread ``t``'s along the rows of C, so that what is contiguous in the
slice is contiguous in C, whatever each thread holds.
"""

from __future__ import annotations

from gemmgen.ir import names
from gemmgen.ir.buffers import slice_pieces
from gemmgen.ir.control import Block, Define, For
from gemmgen.ir.expr import Element, Expr, Int, Var
from gemmgen.ir.output_slices import StageSlice, StoreSlice
from gemmgen.ir.simplify import add, all_of, div, mod, mul
from gemmgen.ir.thread_code import Node
from gemmgen.lower import addresses, bounds, epilogue, output_runs, warps
from gemmgen.lower.context import Context
from gemmgen.lower.copies import over_vectors
from gemmgen.lower.thread_map import outward_map_of, warp_rows
from gemmgen.lower.vectors import store_width


def stage(context: Context, node: StageSlice) -> tuple[Node, ...]:
    """The thread's own row of the slice; elements outside C are left out."""
    slice_ = context.buffer(node.map.dst)
    outer, inner = slice_.letters
    if slice_pieces(context.kernel.spread, outer):
        return _pieces(context, node)
    place = Var(f"slice_{outer}")
    define = Define(place.name, _row_of_thread(context, outer))
    column = Int(0) if context.scalar_accumulator else Var(f"reg_{inner}")
    step = store_width(context.kernel, node.map)

    def in_slice(e: Expr) -> Element:
        first = addresses.own(context, inner, column, step)
        return addresses.in_shared(
            context, slice_, node.stage, {outer: place, inner: add(first, e)}
        )

    if context.scalar_accumulator:
        own = epilogue.Own(lambda _: Var("acc"), place=in_slice)
        return (define, *epilogue.alone(context, node.map, own))
    registers: dict[str, Expr] = {outer: node.row, inner: column}
    return (define, *epilogue.row(context, node.map, registers, in_slice))


def store(context: Context, node: StoreSlice) -> tuple[Node, ...]:
    """The threads' vectors of the slice, side by side along its rows, to C; what is outside C is
    left out."""
    thread_map = outward_map_of(context, node.copy)
    outer, inner = thread_map.row, thread_map.column
    at = thread_map.coordinates()
    row = row_in_tile(context, outer, at[outer], node.row)
    index = {outer: row, inner: at[inner]}
    defines = (Define(x, add(names.tile_origin(x), index[x])) for x in (outer, inner))
    source = addresses.in_shared(context, context.buffer(node.copy.src), node.stage, at)
    target = addresses.in_global(context, node.copy.dst, {outer: Var(outer), inner: Var(inner)})
    moved = output_runs.moved(context, node.copy, target, source)
    inside = [bounds.inside(context, outer, Var(outer))]
    if thread_map.width == 1 or bounds.multiple(context, inner, thread_map.width):
        inside.append(bounds.inside(context, inner, Var(inner)))
    body = (*defines, *bounds.guarded(all_of(*inside), moved))
    (vectors,) = over_vectors(thread_map, body)
    single = isinstance(vectors, Block)  # in braces, which this already is
    return (*thread_map.starts(), *(vectors.body if single else (vectors,)))


def row_in_tile(context: Context, letter: str, number: Expr, row: Expr) -> Expr:
    """Which row of the tile is the row ``number`` of the slice, of rows ``row`` of micro-tiles."""
    first, width = _first_of(context, letter, number), context.axis(letter).width
    step = width if slice_pieces(context.kernel.spread, letter) else 1
    return addresses.of_thread(context, letter, first, row, step)


def _row_of_thread(context: Context, letter: str) -> Expr:
    """The row of the slice that is the thread's own: its number along ``letter``."""
    first, width = names.thread_origin(letter), addresses.width(context, letter)
    if context.axis(letter).registers == 1:
        return first
    if context.axis(letter).warps == 1:
        return div(first, width)
    apart = warps.apart(context, letter)
    of_warp = mul(div(first, apart), names.lanes(letter))
    return add(of_warp, div(mod(first, apart), width))


def _pieces(context: Context, node: StageSlice) -> tuple[Node, ...]:
    """The thread's own rows of the slice, in pieces of neighbours."""
    slice_, spread = context.buffer(node.map.dst), context.kernel.spread
    outer, inner = slice_.letters
    pieces, place = slice_pieces(spread, outer), Var(f"slice_{outer}")
    width, lanes, e = addresses.width(context, outer), names.lanes(outer), context.element
    number = Var(f"piece_{outer}") if pieces > 1 else Int(0)
    apart = mul(number, mul(width, lanes))
    column, step = Var(f"reg_{inner}"), store_width(context.kernel, node.map)

    def in_slice(at: Expr) -> Element:
        first = addresses.own(context, inner, column, step)
        row = add(place, apart, e)
        index = {outer: row, inner: add(first, at)}
        return addresses.in_shared(context, slice_, node.stage, index)

    own = first_of_piece(context, outer, node.row, number)
    registers: dict[str, Expr] = {outer: add(node.row, mul(number, width), e), inner: column}
    index = Define(outer, add(own, e))
    one = epilogue.row(context, node.map, registers, in_slice, index)
    body: tuple[Node, ...] = (For(e.name, Int(0), width, Int(1), one, unroll=True),)
    if pieces > 1:
        assert isinstance(number, Var)
        body = (For(number.name, Int(0), Int(pieces), Int(1), body, unroll=True),)
    return (Define(place.name, _own_rows(context, outer)), *body)


def first_of_piece(context: Context, letter: str, row: Expr, number: Expr) -> Expr:
    """The index in C of the first element of a thread's piece: that with this ``number`` from the
    register ``row`` on."""
    register = add(row, mul(number, addresses.width(context, letter)))
    width = context.axis(letter).width
    return add(names.tile_origin(letter), addresses.own(context, letter, register, width))


def _own_rows(context: Context, letter: str) -> Expr:
    """The first row of a slice that is the thread's own, in the slice's first piece."""
    first = names.thread_origin(letter)
    if context.axis(letter).warps == 1:
        return first
    apart = warps.apart(context, letter)
    return add(mul(div(first, apart), warp_rows(context, letter)), mod(first, apart))


def _first_of(context: Context, letter: str, number: Expr) -> Expr:
    """The first element of the row of a slice with this number along ``letter``."""
    width = addresses.width(context, letter)
    if slice_pieces(context.kernel.spread, letter):
        if context.axis(letter).warps == 1:
            return number
        rows = warp_rows(context, letter)
        before = mul(div(number, rows), warps.apart(context, letter))
        return add(before, mod(number, rows))
    if context.axis(letter).registers == 1:
        return number
    if context.axis(letter).warps == 1:
        return mul(number, width)
    lanes = names.lanes(letter)
    before = mul(div(number, lanes), warps.apart(context, letter))
    return add(before, mul(mod(number, lanes), width))


LOWER = {StoreSlice: store}
