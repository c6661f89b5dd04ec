"""Copies of tiles from global to shared memory, by all threads of a block together."""

from __future__ import annotations

from dataclasses import replace

from gemmgen.ir import names
from gemmgen.ir.buffers import Space
from gemmgen.ir.control import Assign, Define, For, If
from gemmgen.ir.dtypes import DType
from gemmgen.ir.edit import staged_copies, stores_vectors
from gemmgen.ir.expanded import Load, Stage, Store, Transfer
from gemmgen.ir.expr import Element, Expr, Int, Var
from gemmgen.ir.nodes import Copy
from gemmgen.ir.simplify import add
from gemmgen.ir.thread_code import Move, Node, RegisterArray, scoped
from gemmgen.lower import addresses, bounds
from gemmgen.lower.context import Context, next_name
from gemmgen.lower.guarded import Run, Target, call, each, is_function, read
from gemmgen.lower.thread_map import VECTOR, ThreadMap, thread_map_of


def staging_array(context: Context, copy: Copy) -> RegisterArray:
    """The registers in which a tile waits between its load and its store."""
    thread_map = thread_map_of(context, copy)
    named = ((thread_map.vectors, thread_map.count), (thread_map.vector, copy.width))
    sizes = tuple(size for _, size in named if size > 1)
    shape = tuple(name for name, size in named if size > 1)
    return RegisterArray(next_name(copy), _stored(context, copy), shape, sizes, wide=copy.width > 1)


def _stored(context: Context, copy: Copy) -> DType:
    """What the elements of a copied tensor are stored as."""
    return context.buffer(copy.src).dtype


def load(context: Context, node: Load) -> tuple[Node, ...]:
    """Global memory to staging registers."""
    thread_map = thread_map_of(context, node.copy)
    target = _staged(thread_map, node.copy)
    guarded = over_vectors(thread_map, _read_vector(context, thread_map, node, target))
    inside = bounds.whole_tile(context, (thread_map.row, thread_map.column), node.origin, node)
    if node.copy.width == 1 or thread_map.count == 1 or inside is None:
        return guarded
    whole = _read_vector(context, thread_map, node, target, guards=False)
    return (If(inside, over_vectors(thread_map, whole), guarded),)


def store(context: Context, node: Store) -> tuple[Node, ...]:
    """Staging registers to a shared tile."""
    thread_map = thread_map_of(context, node.copy)
    body = _write_vector(context, thread_map, node.copy, node.stage, _staged(thread_map, node.copy))
    return over_vectors(thread_map, body)


def transfer(context: Context, node: Transfer) -> tuple[Node, ...]:
    """Global memory to a shared tile, or to the accumulators, at once; wide vectors through
    registers where their elements are scattered, or the node says so."""
    tile = context.buffer(node.copy.dst)
    if tile.space is Space.REGISTER:
        return _fill_accumulators(context, node.copy)
    thread_map = thread_map_of(context, node.copy)
    vectors = stores_vectors(context.kernel, node.copy)
    if node.copy.width == 1 or (vectors and not node.staged):
        at = thread_map.coordinates()

        def straight(e: Expr) -> Element:
            index = at | {thread_map.column: add(at[thread_map.column], e)}
            return addresses.in_shared(context, tile, node.stage, index)

        body = _read_vector(context, thread_map, node, straight)
    else:
        between, waiting = _between(context, thread_map, node.copy)
        body = (
            *between,
            *_read_vector(context, thread_map, node, waiting),
            *_write_vector(context, thread_map, node.copy, node.stage, waiting),
        )
    return over_vectors(thread_map, body)


def _between(
    context: Context, thread_map: ThreadMap, copy: Copy
) -> tuple[tuple[RegisterArray, ...], Target]:
    """Registers between a wide load and its scattered store: the staging registers, if any."""
    if copy in staged_copies(context.kernel):
        return (), _staged(thread_map, copy)
    name, width, dtype = next_name(copy), copy.width, _stored(context, copy)
    array = RegisterArray(name, dtype, (context.width(copy.dst),), (width,), wide=True)
    return (array,), lambda e: Element(name, (e,))


def _staged(thread_map: ThreadMap, copy: Copy) -> Target:
    def element(e: Expr) -> Element:
        indices: tuple[Expr, ...] = (VECTOR,) if thread_map.count > 1 else ()
        return Element(next_name(copy), (*indices, e) if copy.width > 1 else indices)

    return element


def over_vectors(thread_map: ThreadMap, body: tuple[Node, ...]) -> tuple[Node, ...]:
    body = (*thread_map.locals(), *bounds.guarded(thread_map.inside(), body))
    if thread_map.count > 1:
        return (For(VECTOR.name, Int(0), thread_map.vectors, Int(1), body, unroll=True),)
    return scoped(body)


def _read_vector(
    context: Context,
    thread_map: ThreadMap,
    node: Load | Transfer,
    target: Target,
    *,
    guards: bool = True,
) -> tuple[Node, ...]:
    """One vector from global memory; zeros for what is outside the matrix."""
    at, copy = thread_map.coordinates(), node.copy
    index: dict[str, Expr] = {}
    for letter in (thread_map.row, thread_map.column):
        first = node.origin if letter == context.problem.k else names.tile_origin(letter)
        index[letter] = add(first, at[letter])
    run = Run(context, copy, index, node)
    if guards and is_function(run):
        return (call(run, target),)
    defines = (Define(letter, value) for letter, value in index.items())
    run = replace(run, index={letter: Var(letter) for letter in index})
    if not guards:
        return (*defines, Move(target(Int(0)), run.at(Int(0)), copy.width, run.matrix.dtype))
    return (*defines, *read(run, target))


def _write_vector(
    context: Context, thread_map: ThreadMap, copy: Copy, stage: Stage, source: Target
) -> tuple[Node, ...]:
    tile = context.buffer(copy.dst)
    at = thread_map.coordinates()

    def target(e: Expr) -> Element:
        index = at | {thread_map.column: add(at[thread_map.column], e)}
        steps = {thread_map.first_column.name: copy.width}
        below = {context.element.name: copy.width}
        return addresses.in_shared(context, tile, stage, index, steps=steps, below=below)

    if copy.width == 1:
        return (Assign(target(Int(0)), source(Int(0))),)
    if stores_vectors(context.kernel, copy):
        return (Move(target(Int(0)), source(Int(0)), copy.width, tile.dtype),)
    one = Assign(target(context.element), source(context.element))
    return (each(context, thread_map.vector, one),)


def _fill_accumulators(context: Context, copy: Copy) -> tuple[Node, ...]:
    """The thread's own element of a matrix, into the sum (the kernel of an unfused epilogue)."""
    assert context.leaves_early and context.scalar_accumulator
    letters = context.buffer(copy.src).letters
    element = addresses.in_global(context, copy.src, {x: Var(x) for x in letters})
    return (Assign("acc", element),)


LOWER = {Load: load, Store: store, Transfer: transfer}
