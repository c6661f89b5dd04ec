"""Tiles that TMA copies: their boxes, and the thread that asks for them."""

from __future__ import annotations

from collections.abc import Iterator

from gemmgen.ir import names
from gemmgen.ir.blocked_letters import block, plain
from gemmgen.ir.clusters import along, blocks_of, share_of, shared_along, sharers
from gemmgen.ir.control import For, If
from gemmgen.ir.dtypes import BYTES
from gemmgen.ir.expanded import CopyBox, OneThread
from gemmgen.ir.expr import Binary, Expr, Int, Var
from gemmgen.ir.instruction import instruction
from gemmgen.ir.lowered import Constant
from gemmgen.ir.nodes import Copy
from gemmgen.ir.simplify import add, all_of, div, mul
from gemmgen.ir.thread_code import Node
from gemmgen.lower import addresses
from gemmgen.lower.addresses import begin_of_box
from gemmgen.lower.context import TID, Context, X
from gemmgen.lower.tensor_maps import tile_box

PART = Var("plane")
"""Numbers the parts of elements, each of which has a plane and its own tiles."""


def copy_box(context: Context, node: CopyBox) -> tuple[Node, ...]:
    """The boxes of a tile: one, or a loop over those along each letter that is longer; of a tile
    that blocks of a cluster share, those of the block's own rows, for all of them."""
    tile, copy = context.buffer(node.copy.dst), node.copy
    within: dict[str, Expr] = {}
    loops: list[tuple[str, Expr, Expr, int]] = []
    share = share_of(context.kernel.work, tile)
    for letter, side in zip(tile.letters, tile_box(context, copy), strict=True):
        first, stop = _range(context, copy, letter)
        cut = side < share.extent(letter)
        within[letter] = names.box(letter) if cut else first
        loops += [(letter, first, stop, side)] if cut else []
    part = PART if tile.parts > 1 else None
    target = begin_of_box(tile, node.stage, within, part)
    begin = {letter: add(_origin(context, node, letter), at) for letter, at in within.items()}
    letters = context.tensor(copy.src).letters
    at = tuple(begin.get(letter, Var(letter)) for letter in reversed(letters))
    at = (*at, PART) if part else at
    blocks = _sharers(context, copy)
    name, ranks = ("load_box", ()) if blocks is None else ("multicast_box", (blocks,))
    operands = (target, Var(copy.src), node.barrier, *at, *ranks)
    evict = None if copy.evict == "normal" else copy.evict
    body: Node = instruction(name, *operands, evict=evict)
    for letter, first, stop, side in reversed(loops):
        step = Int(side)
        if tile.atom_width and letter == tile.letters[-1]:
            step = names.atom_width(tile.tensor)
        body = For(names.box(letter).name, first, stop, step, (body,))
    if part is not None:
        body = For(PART.name, Int(0), names.SPLIT, Int(1), (body,), unroll=True)
    return (body,)


def _origin(context: Context, node: CopyBox, letter: str) -> Expr:
    """The first index of the tile along a letter, which may number blocks of k."""
    if plain(letter) == context.problem.k:
        return div(node.origin, Int(block(letter)))
    return names.tile_origin(letter)


def _range(context: Context, copy: Copy, letter: str) -> tuple[Expr, Expr]:
    """The first row, or column, of a tile that the block copies, and the one after the last."""
    work, tile = context.kernel.work, context.buffer(copy.dst)
    across = shared_along(work, tile)
    if across is None or letter != tile.letters[0]:
        return Int(0), names.block(letter)
    first = names.share_origin(copy.src, letter)
    return first, add(first, names.block(letter) / names.cluster(across))


def _sharers(context: Context, copy: Copy) -> Expr | None:
    """The ranks of the blocks that share a tile with this one, as bits; None: it has its own."""
    work, (row, column) = context.kernel.work, context.letters
    across = shared_along(work, context.buffer(copy.dst))
    if across is None:
        return None
    other = row if across == column else column
    if along(work, other) == 1:
        return names.sharers(copy.src)
    first: Expr = names.rank(other)
    if other == row:
        first = first * names.cluster(column)
    return Binary("<<", names.sharers(copy.src), first)


def cluster_constants(context: Context) -> Iterator[Constant]:
    """The blocks of a cluster, and which of them share a tile of each operand."""
    work, (row, column) = context.kernel.work, context.letters
    if not work.cluster:
        return
    of_both, note = (names.cluster(row), names.cluster(column)), "blocks of a cluster"
    for letter, name in zip(context.letters, of_both, strict=True):
        yield Constant(name.name, along(work, letter), None, note)
    yield Constant(names.CLUSTER.name, blocks_of(work), Binary("*", *of_both), note)
    for copy in context.boxed_copies:
        across = shared_along(work, context.buffer(copy.dst))
        if across is None:
            continue
        bits = _bits(of_both[1] if across == column else names.CLUSTER)
        if across == row and along(work, column) > 1:
            bits = div(bits, _bits(of_both[1]))
        value = sum(1 << rank for rank in sharers(work, context.buffer(copy.dst)))
        note = "bit mask: blocks that share the first block's tile"
        yield Constant(names.sharers(copy.src).name, value, bits, note)


def _bits(count: Expr) -> Expr:
    """This many ones."""
    return Binary("<<", Int(1), count) - 1


def constants(context: Context) -> Iterator[Constant]:
    """The bytes of a stage: of the tiles that one phase of its barrier waits for."""
    found: list[Expr] = []
    total = 0
    for copy in context.boxed_copies:
        tile = context.buffer(copy.dst)
        sizes = [tile.extent(letter) for letter in tile.letters]
        size = BYTES[tile.dtype]
        parts = names.SPLIT if tile.parts > 1 else Int(1)
        elements = mul(*(addresses.block_extent(tile, letter) for letter in tile.letters))
        found.append(mul(parts, mul(elements, Int(size))))
        total += tile.parts * sizes[0] * sizes[1] * size
    if found:
        note = "bytes of the tiles in a stage"
        yield Constant(names.STAGE_BYTES.name, total, add(*found), note)


def one_thread(context: Context, node: OneThread, body: tuple[Node, ...]) -> tuple[Node, ...]:
    """``body`` for the thread that the node names, if its condition holds."""
    number = X if context.kernel.producers.warpgroups and node.among == "block" else TID
    chosen = all_of(Binary("==", number, node.thread), node.condition)
    assert chosen is not None
    return (If(chosen, body),)


LOWER = {CopyBox: copy_box}
