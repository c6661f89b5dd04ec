"""The parts of a split sum in one thread's code: its range of k, its addresses in the workspace.

The workspace has a tile of the block's size for each part (one for all parts, if they are added
atomically). Its layout is the kernel's own: a thread's accumulators in pieces of ``width``, the
pieces of neighbouring threads side by side, so that every access of a warp is whole lines. Parts of
a tile lie as far apart as there are tiles: the block's number, in which tiles vary fastest, is its
index.
"""

from __future__ import annotations

from collections.abc import Iterator

from gemmgen.ir import names
from gemmgen.ir.control import Assign, Define, For
from gemmgen.ir.dtypes import DType
from gemmgen.ir.expr import Binary, Element, Expr, Int, Select, Unary, Var, Wide
from gemmgen.ir.instruction import instruction
from gemmgen.ir.names import ARRIVED, OWN_PART, WORKSPACE
from gemmgen.ir.partial_sums import Arrive, ReducePartials, ReduceScope, StorePartial
from gemmgen.ir.simplify import add, div, less, mul, sub, wide_product
from gemmgen.ir.thread_code import CountArrival, Leave, Move, Node, RegisterArray
from gemmgen.lower import bounds
from gemmgen.lower.context import GROUPS, PARTS, TID, Context, SumBody
from gemmgen.lower.types import number, plus
from gemmgen.lower.vectors import accumulator_width

BLOCK = Var("blockIdx.x")
TILES, TILE = Var("tiles"), Var("own_tile")
OWN_GROUP, GROUP = Var("own_group"), Var("group_tile")
LAST, LAST_OF_GROUP = Var("is_last"), Var("is_last_of_group")
PARTS_OF_GROUP = PARTS / GROUPS
PLACE, OFFSET, SUM = Var("part_tile"), Var("part_at"), "part_sum"
IN_FLIGHT = 16
"""Loads that a thread has in flight while it adds parts: more of them take registers, fewer leave
the memory idle."""


def chunk(letter: str) -> Var:
    """Elements along k of a part, whole steps: ``chunk_k``."""
    return Var(f"chunk_{letter}")


def range_of_part(context: Context) -> Iterator[Define]:
    """The range of k of the block's part; the last ones may be short, or empty."""
    if context.kernel.work.groups > 1:
        yield Define(OWN_GROUP.name, div(OWN_PART, PARTS_OF_GROUP))
    k = context.problem.k
    size, step = bounds.extent(context, k), names.block(k)
    steps = Var(f"steps_{k}")
    yield Define(steps.name, div(sub(add(size, step), Int(1)), step))
    yield Define(chunk(k).name, mul(div(sub(add(steps, PARTS), Int(1)), PARTS), step))
    yield Define(names.start(k).name, mul(OWN_PART, chunk(k)))
    end = add(names.start(k), chunk(k))
    yield Define(names.stop(k).name, Select(less(end, size), end, size))


def store_partial(context: Context, node: StorePartial) -> tuple[Node, ...]:
    """Stores the thread's accumulators to the workspace; a group's replace those of its first part,
    which the same thread has read."""
    if node.atomic:
        acc_type = _dtype(context)
        return _over_pieces(
            context,
            lambda total, at: (instruction("add", _at(context, TILE, at), total, dtype=acc_type),),
        )
    address = GROUP if node.scope == "groups" else BLOCK
    return _over_pieces(
        context, lambda total, at: (_move(context, _at(context, address, at), total),)
    )


def arrive(context: Context, node: Arrive) -> tuple[Node, ...]:
    """All blocks of the scope but the last one to arrive return.  A tile has a counter for each
    group, and one for all groups."""
    first, name = Binary("==", TID, Int(0)), LAST
    work = context.kernel.work
    # a launch has at most INT_MAX tiles times PARTS
    tile = Wide(TILE) if work.groups >= work.parts else TILE
    counters = mul(tile, add(GROUPS, Int(1)))
    address: dict[ReduceScope, tuple[Expr, Expr]] = {
        "parts": (TILE, PARTS),
        "group": (add(counters, OWN_GROUP), PARTS_OF_GROUP),
        "groups": (add(counters, GROUPS), GROUPS),
    }
    at, count = address[node.scope]
    if node.scope == "group":
        name = LAST_OF_GROUP
    counter = Element(ARRIVED.name, (at,))
    last, leave = sub(count, Int(1)), Leave(Unary("!", name))
    if node.number is None or node.threads is None:
        return (CountArrival(name.name, first, counter, last), leave)
    counted = Var("counted_last" if node.scope != "group" else "counted_last_of_group")
    published = instruction("sync_warps_or", node.number, node.threads, counted, result=name.name)
    return (CountArrival(counted.name, first, counter, last, alone=True), published, leave)


def reduce_partials(context: Context, node: ReducePartials) -> tuple[Node, ...]:
    """The accumulators of the whole scope, in the thread's registers."""
    if node.atomic:
        return _over_pieces(context, lambda total, at: _take(context, total, at))
    work, scope = context.kernel.work, node.scope
    if scope == "parts" and work.parts == 2:
        return _add_the_other(context)
    number = Var("other_group" if scope == "groups" else "other_part")
    lead: tuple[Node, ...] = ()
    start, step, count, others = TILE, TILES, PARTS, work.parts - 1
    if scope == "groups":
        step, count, others = mul(PARTS_OF_GROUP, TILES), GROUPS, work.groups - 1
    elif scope == "group":
        start, count, others = GROUP, PARTS_OF_GROUP, work.parts // work.groups - 1
        lead = (Define(GROUP.name, add(mul(OWN_GROUP, mul(PARTS_OF_GROUP, TILES)), TILE)),)
    first = _over_pieces(
        context, lambda total, at: (_move(context, total, _at(context, start, at)),)
    )
    rest = _added(context, add(start, mul(number, step)))
    unroll = _at_once(context, others)
    return (*lead, *first, For(number.name, Int(1), count, Int(1), rest, unroll=unroll))


def _add_the_other(context: Context) -> tuple[Node, ...]:
    """Adds the other of two parts to the block's own in registers: the order does not matter.

    A compiler would unroll a loop over one other part, issue both parts' loads at once, and spill.
    """
    return _added(context, add(TILE, mul(sub(Int(1), OWN_PART), TILES)))


def _added(context: Context, tile: Expr) -> tuple[Node, ...]:
    """Adds the accumulators of the ``tile``-th tile of the workspace to the thread's."""
    pieces = _over_pieces(context, lambda total, at: _add(context, total, _at(context, PLACE, at)))
    return (Define(PLACE.name, tile), *pieces)


def piece_width(context: Context) -> int:
    """The width of an access of accumulators: as many as are contiguous."""
    return accumulator_width(context.lowering.accumulator_row(context), _dtype(context))


def _dtype(context: Context) -> DType:
    """The type of the accumulators."""
    return context.problem.accumulate


def _at_once(context: Context, others: int) -> bool | int:
    """How many of ``others`` have their loads in flight at once."""
    pieces = context.kernel.spread.registers // piece_width(context)
    return min(IN_FLIGHT // pieces, others) if pieces < IN_FLIGHT and others else False


def _take(context: Context, total: Element | Var, offset: Expr) -> tuple[Node, ...]:
    address = _at(context, TILE, offset)
    return (Assign(_target(total), address), Assign(address, number(0, _dtype(context))))


def _add(context: Context, total: Element | Var, address: Element) -> tuple[Node, ...]:
    """Adds the piece at ``address`` to the accumulators from ``total`` on."""
    width = piece_width(context)
    if width == 1:
        return (Assign(_target(total), plus(total, address, _dtype(context))),)
    assert isinstance(total, Element)
    one = Element(total.buffer, (*total.indices[:-1], add(total.indices[-1], context.element)))
    vector = context.width(WORKSPACE.name)
    each = Assign(one, plus(one, Element(SUM, (context.element,)), _dtype(context)))
    return (
        RegisterArray(SUM, _dtype(context), (vector,), (width,), wide=True),
        Move(Element(SUM, (Int(0),)), address, width, _dtype(context)),
        For(context.element.name, Int(0), vector, Int(1), (each,)),
    )


def _move(context: Context, target: Element | Var, source: Element | Var) -> Node:
    width = piece_width(context)
    if width == 1:
        return Assign(_target(target), source)
    assert isinstance(target, Element) and isinstance(source, Element)
    return Move(target, source, width, _dtype(context))


def _target(total: Element | Var) -> Element | str:
    return total.name if isinstance(total, Var) else total


def _at(context: Context, tile: Expr, offset: Expr) -> Element:
    """An element of the workspace: ``offset`` in the ``tile``-th tile of it."""
    m, n = context.letters
    size = mul(names.block(m), names.block(n))
    return Element(WORKSPACE.name, (add(wide_product(tile, size), offset),))


def _over_pieces(context: Context, body: SumBody) -> tuple[Node, ...]:
    """``body`` for each piece of the thread's accumulators, at its offset in the block's share of
    the workspace."""
    vector = context.width(WORKSPACE.name)
    mine = mul(TID, vector)

    def piece(total: Element | Var, number: Expr) -> tuple[Node, ...]:
        if isinstance(total, Var):
            return body(total, mine)
        offset = Define(OFFSET.name, add(mul(number, context.copying_threads), mine))
        return (offset, *body(total, OFFSET))

    return context.lowering.each_sum(context, vector, piece)


LOWER = {StorePartial: store_partial, Arrive: arrive, ReducePartials: reduce_partials}
