"""Copies between memories: tiles into shared memory, fragments into registers."""

from __future__ import annotations

from collections.abc import Callable

from gemmgen.ir import names
from gemmgen.ir.control import Assign, Block, Define, For, If
from gemmgen.ir.dtypes import DType
from gemmgen.ir.expanded import Fetch, Load, Stage, Store, Transfer
from gemmgen.ir.expr import Binary, Element, Expr, Float, Int, Var
from gemmgen.ir.lowered import Move, Node, RegisterArray
from gemmgen.ir.nodes import Copy, Space
from gemmgen.ir.simplify import add, all_of, choose, less
from gemmgen.lower.context import Context, after, fragment_at, next_name
from gemmgen.lower.thread_map import PIECE, ThreadMap, thread_map_of
from gemmgen.lower.types import computable, zero

Target = Callable[[Expr], Element]
"""The element that number ``e`` of a piece goes to."""


def staging_array(context: Context, copy: Copy) -> RegisterArray:
    """The registers in which a tile waits between its load and its store."""
    thread_map = thread_map_of(context, copy)
    sizes = tuple(size for size in (thread_map.count, copy.width) if size > 1)
    shape = tuple(Int(size) for size in sizes)
    return RegisterArray(next_name(copy), _stored(context, copy), shape, sizes, wide=copy.width > 1)


def _stored(context: Context, copy: Copy) -> DType:
    """What the elements of a copied tensor are stored as."""
    return context.buffer(copy.src).dtype


def load(context: Context, node: Load) -> tuple[Node, ...]:
    """Global memory to staging registers."""
    context = context.copying(node)
    thread_map = thread_map_of(context, node.copy)
    target = _staged(thread_map, node.copy)
    guarded = over_pieces(
        thread_map, _read_piece(context, thread_map, node.copy, node.origin, target)
    )
    inside = _tile_inside(context, thread_map, node.origin)
    if node.copy.width == 1 or thread_map.count == 1 or inside is None:
        return guarded
    whole = _read_piece(context, thread_map, node.copy, node.origin, target, guards=False)
    return (If(inside, over_pieces(thread_map, whole), guarded),)


def _tile_inside(context: Context, thread_map: ThreadMap, origin: Expr) -> Expr | None:
    """The condition, the same for all threads, under which a whole tile lies in its matrix.

    Wide guarded loads branch piece by piece; this spares them to all tiles but the ragged ones.
    """
    conditions: list[Expr | None] = []
    for letter in (thread_map.row, thread_map.column):
        first = origin if letter == context.problem.k else names.tile_origin(letter)
        if letter == context.problem.k and context.edge == "tile":
            conditions.append(context.inside(letter, first))
        elif not context.is_whole(letter):
            end = add(first, names.block(letter))
            conditions.append(Binary("<=", end, context.stop(letter)))
    return all_of(*conditions)


def store(context: Context, node: Store) -> tuple[Node, ...]:
    """Staging registers to a shared tile."""
    thread_map = thread_map_of(context, node.copy)
    body = _write_piece(context, thread_map, node.copy, node.stage, _staged(thread_map, node.copy))
    return over_pieces(thread_map, body)


def transfer(context: Context, node: Transfer) -> tuple[Node, ...]:
    """Global memory to a shared tile, or to the sums, at once; wide pieces through registers where
    their elements are scattered, or the node says so."""
    tile = context.buffer(node.copy.dst)
    if tile.space is Space.REGISTER:
        return _fill_sums(context, node.copy)
    context = context.copying(node)
    thread_map = thread_map_of(context, node.copy)
    in_row = tile.layout.order[-1] == thread_map.column
    if node.copy.width == 1 or (in_row and not node.staged):
        place = thread_map.place()

        def straight(e: Expr) -> Element:
            index = place | {thread_map.column: add(place[thread_map.column], e)}
            return context.in_shared(tile, node.stage, index)

        body = _read_piece(context, thread_map, node.copy, node.origin, straight)
    else:
        between, waiting = _between(context, thread_map, node.copy)
        body = (
            *between,
            *_read_piece(context, thread_map, node.copy, node.origin, waiting),
            *_write_piece(context, thread_map, node.copy, node.stage, waiting),
        )
    return over_pieces(thread_map, body)


def _between(
    context: Context, thread_map: ThreadMap, copy: Copy
) -> tuple[tuple[RegisterArray, ...], Target]:
    """Registers between a wide load and its scattered store: the staging registers, if any."""
    if copy in context.expanded.staged:
        return (), _staged(thread_map, copy)
    name, width, dtype = next_name(copy), copy.width, _stored(context, copy)
    array = RegisterArray(name, dtype, (Int(width),), (width,), wide=True)
    return (array,), lambda e: Element(name, (e,))


def _staged(thread_map: ThreadMap, copy: Copy) -> Target:
    def element(e: Expr) -> Element:
        indices: tuple[Expr, ...] = (PIECE,) if thread_map.count > 1 else ()
        return Element(next_name(copy), (*indices, e) if copy.width > 1 else indices)

    return element


def over_pieces(thread_map: ThreadMap, body: tuple[Node, ...]) -> tuple[Node, ...]:
    inside = thread_map.inside()
    if inside is not None:
        body = (If(inside, body),)
    body = (*thread_map.locals(), *body)
    if thread_map.count > 1:
        return (For(PIECE.name, Int(0), Int(thread_map.count), Int(1), body, unroll=True),)
    return scoped(body)


def scoped(body: tuple[Node, ...]) -> tuple[Node, ...]:
    """``body`` in braces, where it has names of its own."""
    names_something = any(isinstance(n, Define | RegisterArray) for n in body)
    return (Block("", (), body, scoped=True),) if names_something else body


def _read_piece(
    context: Context,
    thread_map: ThreadMap,
    copy: Copy,
    origin: Expr,
    target: Target,
    *,
    guards: bool = True,
) -> tuple[Node, ...]:
    """One piece from global memory; zeros stand for what lies outside the matrix."""
    place = thread_map.place()
    index: dict[str, Expr] = {}
    defines: list[Define] = []
    for letter in (thread_map.row, thread_map.column):
        first = origin if letter == context.problem.k else names.tile_origin(letter)
        defines.append(Define(letter, add(first, place[letter])))
        index[letter] = Var(letter)
    if not guards:
        source = context.at(copy.src, (thread_map.row, thread_map.column), index)
        return (*defines, Move(target(Int(0)), source, copy.width, _stored(context, copy)))
    return (*defines, *guarded_read(context, copy.src, index, copy.width, target))


def guarded_read(
    context: Context, tensor: str, index: dict[str, Expr], width: int, target: Target
) -> tuple[Node, ...]:
    """``width`` neighbours of a global matrix at ``index``: wide where all lie inside it."""
    letters, dtype = context.buffer(tensor).layout.order, context.buffer(tensor).dtype
    row, column = letters[0], letters[-1]

    def source(e: Expr) -> Element:
        return context.at(tensor, letters, index | {column: add(index[column], e)})

    in_row = context.inside(row, index[row])
    if width == 1:
        guard = all_of(in_row, context.inside(column, index[column]))
        return (Assign(target(Int(0)), choose(guard, source(Int(0)), zero(dtype))),)
    whole = Move(target(Int(0)), source(Int(0)), width, dtype)
    if context.is_whole(column) and in_row is None:
        return (whole,)
    return (
        If(
            _whole_piece(context, in_row, column, index[column], width),
            (whole,),
            (
                _each(
                    context,
                    width,
                    _one(context, in_row, column, index, width, source, target, dtype),
                ),
            ),
        ),
    )


def _whole_piece(
    context: Context, in_row: Expr | None, column: str, first: Expr, width: int
) -> Expr:
    """All of a piece's elements exist: the last one does."""
    in_column = None
    if not context.is_whole(column):
        last = first if context.multiple(column, width) else after(first, width - 1)
        in_column = context.inside(column, last)
    condition = all_of(in_row, in_column)
    assert condition is not None
    return condition


def _one(
    context: Context,
    in_row: Expr | None,
    column: str,
    index: dict[str, Expr],
    width: int,
    source: Target,
    target: Target,
    dtype: DType,
) -> Node:
    """One element of a piece that is not wholly inside: read if it exists, else zero."""
    e = context.element
    if context.is_whole(column) or context.multiple(column, width):
        return Assign(target(e), zero(dtype))
    in_column = less(Binary("+", index[column], e), context.stop(column))
    return Assign(target(e), choose(all_of(in_row, in_column), source(e), zero(dtype)))


def _each(context: Context, width: int, body: Node) -> For[Node]:
    return For(context.element.name, Int(0), Int(width), Int(1), (body,), unroll=True)


def _write_piece(
    context: Context, thread_map: ThreadMap, copy: Copy, stage: Stage, source: Target
) -> tuple[Node, ...]:
    tile = context.buffer(copy.dst)
    place = thread_map.place()

    def target(e: Expr) -> Element:
        index = place | {thread_map.column: add(place[thread_map.column], e)}
        steps, below = {thread_map.first_column.name: copy.width}, {
            context.element.name: copy.width
        }
        return context.in_shared(tile, stage, index, steps=steps, below=below)

    if copy.width == 1:
        return (Assign(target(Int(0)), source(Int(0))),)
    if tile.layout.order[-1] == thread_map.column:
        return (Move(target(Int(0)), source(Int(0)), copy.width, tile.dtype),)
    return (_each(context, copy.width, Assign(target(context.element), source(context.element))),)


def fetch(context: Context, node: Fetch) -> tuple[Node, ...]:
    """A fragment: the thread's elements of one operand, for one k."""
    copy = node.copy
    (letter,) = context.buffer(copy.dst).letters
    source, axis = context.buffer(copy.src), context.axis(letter)
    register: Expr = Var(f"reg_{letter}") if axis.registers > copy.width else Int(0)
    own = context.own(letter, register, copy.width)
    k = context.problem.k

    def target(e: Expr) -> Element:
        return fragment_at(node.slot, copy.dst, add(register, e))

    body: tuple[Node, ...]
    if source.space is Space.SHARED:
        steps = {register.name: copy.width} if isinstance(register, Var) else None
        element = context.in_shared(source, node.stage, {letter: own, k: node.k}, steps=steps)
        body = (Assign(target(Int(0)), computable(element, source.dtype)),)
        if copy.width > 1:
            raw, into, convert = _converted(context, copy, target)
            body = (*raw, Move(into(Int(0)), element, copy.width, source.dtype), *convert)
    else:
        step = node.k if node.origin is None else add(node.origin, node.k)
        index = {letter: Var(letter), k: step}
        body = (
            Define(letter, add(names.tile_origin(letter), own)),
            *guarded_fragment(context, copy, index, node.origin is not None, target),
        )
    if isinstance(register, Int):
        return scoped(body)
    stop, by = names.registers(letter), Int(copy.width)
    return (For(register.name, Int(0), stop, by, body, unroll=True),)


def guarded_fragment(
    context: Context, copy: Copy, index: dict[str, Expr], ragged_k: bool, target: Target
) -> tuple[Node, ...]:
    """A fragment's elements from global memory; k needs a guard only inside a tile."""
    if copy.width > 1:
        raw, into, convert = _converted(context, copy, target)
        return (*raw, *guarded_read(context, copy.src, index, copy.width, into), *convert)
    guard = all_of(
        *(
            context.inside(letter, at)
            for letter, at in index.items()
            if ragged_k or letter != context.problem.k
        )
    )
    source = context.buffer(copy.src)
    element = computable(context.at(copy.src, source.layout.order, index), source.dtype)
    return (Assign(target(Int(0)), choose(guard, element, Float(0.0))),)


def _converted(
    context: Context, copy: Copy, target: Target
) -> tuple[tuple[RegisterArray, ...], Target, tuple[For[Node], ...]]:
    """Where a wide read of a fragment goes: straight to ``target``, or, where the fragment is of
    another type, to raw registers (declared first) whose elements are converted behind it."""
    dtype, width = _stored(context, copy), copy.width
    if dtype == context.buffer(copy.dst).dtype:
        return (), target, ()
    name = f"{copy.dst.removesuffix('_frag')}_raw"
    value = computable(Element(name, (context.element,)), dtype)
    raw = RegisterArray(name, dtype, (Int(width),), (width,), wide=True)
    return (
        (raw,),
        lambda e: Element(name, (e,)),
        (_each(context, width, Assign(target(context.element), value)),),
    )


def _fill_sums(context: Context, copy: Copy) -> tuple[Node, ...]:
    """The thread's own element of a matrix, into the sum (the kernel of an unfused epilogue)."""
    assert context.leaves_early and context.scalar_sums
    letters = context.buffer(copy.src).layout.order
    return (Assign("acc", context.at(copy.src, letters, {x: Var(x) for x in letters})),)
