"""Tiles that the copy engine (TMA) copies: their boxes, and the thread that asks for them."""

from __future__ import annotations

from collections.abc import Iterator

from gemmgen.ir import names
from gemmgen.ir.boxes import box_of
from gemmgen.ir.control import For, If
from gemmgen.ir.dtypes import BYTES
from gemmgen.ir.expanded import CopyBox, OneThread
from gemmgen.ir.expr import Binary, Element, Expr, Int, Var
from gemmgen.ir.lowered import Constant
from gemmgen.ir.nodes import Copy
from gemmgen.ir.simplify import add, all_of, mul
from gemmgen.ir.tensor_map import TensorMap
from gemmgen.ir.thread_code import LoadBox, Node
from gemmgen.lower import box_stores
from gemmgen.lower.context import TID, Context, X


def copy_box(context: Context, node: CopyBox) -> tuple[Node, ...]:
    """The boxes of a tile: one, or a loop over those along each letter that is longer."""
    tile = context.buffer(node.copy.dst)
    within: dict[str, Expr] = {}
    loops: list[tuple[str, int]] = []
    for letter, side in zip(tile.letters, _box(context, node.copy), strict=True):
        cut = side < tile.extent(letter)
        within[letter] = names.box(letter) if cut else Int(0)
        loops += [(letter, side)] if cut else []
    stage = () if node.stage is None else (node.stage,)
    target = Element(tile.name, (*stage, *within.values()))
    first = {
        letter: add(node.origin if letter == context.problem.k else names.tile_origin(letter), at)
        for letter, at in within.items()
    }
    letters = context.tensor(node.copy.src).letters
    at = tuple(first.get(letter, Var(letter)) for letter in reversed(letters))
    copy = node.copy
    body: Node = LoadBox(target, copy.src, node.barrier, at, tile.dtype, copy.evict)
    for letter, side in reversed(loops):
        variable = names.box(letter).name
        body = For(variable, Int(0), names.block(letter), Int(side), (body,))
    return (body,)


def _box(context: Context, copy: Copy) -> tuple[int, int]:
    """Rows and columns of a tile's boxes."""
    box = box_of(context.buffer(copy.dst))
    assert box is not None, f"{copy.dst} has no boxes"
    return box


def maps(context: Context) -> tuple[TensorMap, ...]:
    """The maps of the tensors that the copy engine reads, and of that which it writes."""
    written = context.boxed_outward
    last = (box_stores.map_of(context, written),) if written else ()
    return (*(_map(context, copy) for copy in context.boxed_copies), *last)


def _map(context: Context, copy: Copy) -> TensorMap:
    tile = context.buffer(copy.dst)
    sides = dict(zip(tile.letters, _box(context, copy), strict=True))
    letters = context.tensor(copy.src).letters
    return TensorMap(copy.src, tuple(sides.get(letter, 1) for letter in reversed(letters)))


def constants(context: Context) -> Iterator[Constant]:
    """The bytes of a stage: of the tiles that one phase of its barrier waits for."""
    found: list[Expr] = []
    total = 0
    for copy in context.boxed_copies:
        tile = context.buffer(copy.dst)
        sizes = [tile.extent(letter) for letter in tile.letters]
        size = BYTES[tile.dtype]
        found.append(mul(mul(*(names.block(letter) for letter in tile.letters)), Int(size)))
        total += sizes[0] * sizes[1] * size
    if found:
        note = "bytes of the tiles in a stage"
        yield Constant(names.STAGE_BYTES.name, total, add(*found), note)


def one_thread(context: Context, node: OneThread, body: tuple[Node, ...]) -> tuple[Node, ...]:
    """``body`` for the thread that the node names, if its condition holds."""
    number = X if context.kernel.producers.warpgroups else TID
    chosen = all_of(Binary("==", number, node.thread), node.condition)
    assert chosen is not None
    return (If(chosen, body),)


LOWER = {CopyBox: copy_box}
