"""Block and thread numbers to coordinates in C: the block's tile, the thread's first element."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gemmgen.ir import clusters, names
from gemmgen.ir.buffers import Origins
from gemmgen.ir.control import Block, Define, For
from gemmgen.ir.expr import Binary, Call, Expr, Int, Select, Var
from gemmgen.ir.names import OWN_PART
from gemmgen.ir.simplify import add, div, less, mod, mul, sub
from gemmgen.ir.thread_code import BLOCKS, Function, Invoke, Leave, Node, Parameter
from gemmgen.ir.traversal import names_in
from gemmgen.lower import bounds
from gemmgen.lower.batches import EACH, OWN, counted, first_matrices, matrices, tiles_of_each
from gemmgen.lower.context import Context, X, Y
from gemmgen.lower.split import BLOCK, TILE, TILES, range_of_part

GROUP = Var("GROUP")
FIRST_TILE = Var("first_tile")
"""Of a ping-pong consumer."""
FUNCTION = "tile_at"
"""What says where a tile is."""
CLUSTER, RANK = Var("cluster"), Var("rank")
"""The number of the block's cluster, and of the block in it."""


def of_block(context: Context) -> tuple[Node, ...]:
    """The first lines of a kernel: the tile of C from the block's number, or how many tiles there
    are if the block is persistent."""
    if context.is_persistent:
        return (Block("the tiles of C", (), _counts(context)),)
    work, acc = context.kernel.work, context.kernel.accumulator
    counts = (*_blocks(context), *_parts(context))
    # Parts have as many blocks as there are tiles: a block's cluster follows from its tile.
    clustered = tuple(_in_cluster(context))
    batch, first = (), (*counts, *clustered) if context.is_split else (*clustered, *counts)
    if work.batch:
        batch = matrices(context, first, _number_of_all(context))
        first = (Define(OWN.name, mod(_number_of_all(context), EACH)),)
    if context.leaves_early:
        body = (*first, *_single(context))
        origins = tuple(dict.fromkeys((*_ordered(work.origins), *acc.origins)))
        note = "the thread's element of C" if origins or batch else ""
        return (*batch, Block(note, origins, body)) if note else body
    tiles = (*first, *_tiles(context))
    note = "the block's tile of C"
    if context.is_split:
        tiles = (*tiles, *range_of_part(context))
        note += " and its range of k"
    return (*batch, Block(note, _ordered(work.origins), tiles))


def of_thread(context: Context) -> tuple[Node, ...]:
    """The place of a thread, or of its warp, in the tile of C, or in each of a persistent block's
    tiles."""
    if context.leaves_early:
        return ()
    coordinates = tuple(context.lowering.coordinates(context))
    where = "the tile" if context.has_roles else "it"
    if context.is_persistent:
        where = "a tile"
    note = f"the {context.lowering.owner}'s position in {where}"
    return (Block(note, context.kernel.accumulator.origins, coordinates),)


def _counts(context: Context) -> tuple[Node, ...]:
    """The place in the cluster, and the number of tiles."""
    return (*_ranks(context), *_blocks(context), _tiles_of_all(context))


def without_unused(
    context: Context, placed: tuple[Node, ...], rest: tuple[Node, ...]
) -> tuple[Node, ...]:
    """``placed`` without the thread's coordinates that neither it nor the ``rest`` names:
    accumulators that leave by stmatrix may need none along a letter."""
    own = {names.thread_origin(letter).name for letter in context.letters}
    unused = own - names_in((placed, rest))

    def kept(node: Node) -> bool:
        return not (isinstance(node, Define) and node.name in unused)

    return tuple(
        replace(node, body=tuple(filter(kept, node.body))) if isinstance(node, Block) else node
        for node in placed
    )


def walk(context: Context, body: tuple[Node, ...], turns: int) -> tuple[Node, ...]:
    """``body`` for each of the block's tiles: its number, and those that follow it by the number of
    blocks; of several ``turns`` by as many times that, from the own turn's tile on."""
    origins, number = context.kernel.work.origins, _number_of_all(context)
    batch: tuple[Node, ...] = ()
    numbered = tuple(_cluster(context))
    own: tuple[Node, ...] = ()
    if context.kernel.work.batch:
        batch = matrices(context, numbered, number)
        numbered, own = (), (Define(OWN.name, mod(number, EACH)),)
    located = (*numbered, *own, *_tiles(context))
    tile: Node = Block("the tile of C", _ordered(origins), located)
    if context.has_roles:
        tile = _called(context, located, _counts(context))
    one = (
        *batch,
        tile,
        *body,
        *(first_matrices(context) if context.kernel.work.batch else ()),
    )
    if turns == 1:
        loop = For(TILE.name, BLOCK, TILES, BLOCKS, one)
        return (Block("each of the block's tiles", _walking(origins), (loop,)),)
    first = Define(FIRST_TILE.name, add(BLOCK, mul(names.CONSUMER_NUMBER, BLOCKS)))
    loop = For(TILE.name, FIRST_TILE, TILES, mul(names.CONSUMER_GROUPS, BLOCKS), one)
    return (Block("each of the consumer's tiles", _walking(origins), (first, loop)),)


def _called(context: Context, body: tuple[Node, ...], counts: tuple[Node, ...]) -> Invoke:
    """The call of a function of this ``body``, which gives the tile's first row and column: each
    role of a block calls it.  ``counts`` are what it may need besides the tile's number."""
    known = (TILE.name, CLUSTER.name, *(node.name for node in counts if isinstance(node, Define)))
    own = {node.name for node in body if isinstance(node, Define)}
    needed = [name for name in known if name in names_in(body) - own]
    function = Function(
        FUNCTION,
        "the first row and column of a tile of C, by its number",
        _ordered(context.kernel.work.origins),
        tuple(map(Parameter, needed)),
        body,
        tuple(names.tile_origin(letter).name for letter in context.letters),
    )
    return Invoke(function, tuple(map(Var, needed)))


def _walking(origins: Origins) -> Origins:
    return tuple(origin for origin in origins if origin == "persistent")


def _ordered(origins: Origins) -> Origins:
    """What orders the tiles, of all that is said about how blocks run."""
    return tuple(origin for origin in origins if origin not in ("persistent", "overlap_launch"))


def _blocks(context: Context) -> Iterator[Node]:
    """How many tiles C has along each letter; a ragged edge is a tile too."""
    rows, columns = context.letters
    work = context.kernel.work
    both = work.raster > 1 or context.is_split or context.is_persistent or work.batch
    needed = (rows, columns) if both else (columns,)
    for letter in needed:
        size: Expr = names.block(letter)
        if clusters.along(work, letter) > 1:
            size = size * names.cluster(letter)
        last = div(sub(bounds.extent(context, letter), Int(1)), size)
        yield Define(counted(context, letter).name, add(last, Int(1)))
    if work.batch:
        yield tiles_of_each(context)


def _in_cluster(context: Context) -> Iterator[Define]:
    """The number of the block's cluster, and its own in that."""
    yield from _cluster(context)
    yield from _ranks(context)


def _cluster(context: Context) -> Iterator[Define]:
    """Blocks of a cluster, and their tiles, have consecutive numbers."""
    if context.kernel.work.cluster:
        yield Define(CLUSTER.name, div(_number_of_block(context), names.CLUSTER))


def _ranks(context: Context) -> Iterator[Define]:
    """The block's place in its cluster along each letter."""
    several = [x for x in context.letters if clusters.along(context.kernel.work, x) > 1]
    rank: Expr = mod(BLOCK, names.CLUSTER)
    if len(several) == 2:
        yield Define(RANK.name, rank)
        columns = names.cluster(context.letters[1])
        yield Define(names.rank(context.letters[0]).name, div(RANK, columns))
        rank = mod(RANK, columns)
    if several:
        yield Define(names.rank(several[-1]).name, rank)


def _parts(context: Context) -> Iterator[Node]:
    """Tiles first, then parts: blocks that run together then read the same range of A and B, which
    the L2 cache holds, as if the matrices were so short."""
    if context.is_split:
        yield _tiles_of_all(context)
        yield Define(OWN_PART.name, div(BLOCK, TILES))
        yield Define(TILE.name, mod(BLOCK, TILES))


def _tiles_of_all(context: Context) -> Define:
    """The number of tiles of all matrices."""
    rows, columns = context.letters
    tiles: Expr = mul(counted(context, rows), counted(context, columns))
    if context.kernel.work.batch:
        tiles = EACH
    for letter in context.kernel.work.batch:
        tiles = mul(tiles, bounds.extent(context, letter))
    if context.kernel.work.cluster:
        tiles = mul(tiles, names.CLUSTER)
    return Define(TILES.name, tiles)


def _number_of_all(context: Context) -> Var:
    """The number of the block's tile, or of its cluster's tiles, among those of all matrices."""
    return CLUSTER if context.kernel.work.cluster else _number_of_block(context)


def _number_of_block(context: Context) -> Var:
    return TILE if context.is_split or context.is_persistent else BLOCK


def _number(context: Context) -> Var:
    """The number of the block's tile in its matrix."""
    return OWN if context.kernel.work.batch else _number_of_all(context)


def _tile_numbers(context: Context) -> tuple[Expr, Expr]:
    """The row and the column of the block's tile: row by row, or in groups (``_groups``)."""
    if context.kernel.work.raster > 1:
        hilbert = context.kernel.work.order == "hilbert"
        number, rows = Var("tile_on_curve" if hilbert else "tile_in_group"), Var("group_rows")
        return add(Var("group"), mod(number, rows)), div(number, rows)
    columns, number = counted(context, context.letters[1]), _number(context)
    return div(number, columns), mod(number, columns)


def _tiles(context: Context) -> Iterator[Node]:
    yield from _groups(context)
    for letter, number in zip(context.letters, _tile_numbers(context), strict=True):
        if clusters.along(context.kernel.work, letter) > 1:
            number = add(mul(number, names.cluster(letter)), names.rank(letter))
        yield Define(names.tile_origin(letter).name, mul(number, names.block(letter)))


def _groups(context: Context) -> Iterator[Node]:
    """Column by column within a group of GROUP block rows; the last group may have fewer."""
    if context.kernel.work.raster == 1:
        return
    (m, n), number = context.letters, _number(context)
    rows, columns = counted(context, m), counted(context, n)
    full, group = Var("full_group"), Var("group")
    yield Define(full.name, Select(less(rows, GROUP), rows, GROUP))
    yield Define(group.name, mul(div(number, full * columns), full))
    left = sub(rows, group)
    yield Define("group_rows", Select(less(left, full), left, full))
    in_group = Var("tile_in_group")
    yield Define(in_group.name, mod(number, full * columns))
    if context.kernel.work.order == "hilbert":
        yield from _squares(in_group, Var("group_rows"), columns)


def _squares(number: Var, rows: Expr, columns: Expr) -> Iterator[Node]:
    """Whole squares of a group are consecutive numbers column by column: a curve through each of
    them permutes those.  What is left of a group that has no more of them stays as it is."""
    squares = columns / GROUP * (GROUP * GROUP)
    yield Define("in_squares", Select(less(rows, GROUP), Int(0), squares))
    curve = Call("hilbert", (number, GROUP))
    yield Define("tile_on_curve", Select(less(number, Var("in_squares")), curve, number))


def _single(context: Context) -> Iterator[Node]:
    """A thread with one element, alone: outside C it has nothing to do."""
    yield from _groups(context)
    outside: Expr | None = None
    for letter, number in zip(context.letters, _tile_numbers(context), strict=True):
        thread = X if letter == context.kernel.spread.x else Y
        yield Define(letter, add(mul(number, names.block(letter)), thread))
        past = Binary(">=", Var(letter), bounds.extent(context, letter))
        outside = past if outside is None else Binary("||", outside, past)
    assert outside is not None
    yield Leave(outside)
