"""Boxes in which TMA stores a slice of the output from shared memory."""

from __future__ import annotations

from gemmgen.ir import names
from gemmgen.ir.control import For
from gemmgen.ir.expr import Expr, Int, Var
from gemmgen.ir.instruction import instruction
from gemmgen.ir.output_slices import StoreBoxes
from gemmgen.ir.simplify import add
from gemmgen.ir.thread_code import Node
from gemmgen.lower.addresses import begin_of_box
from gemmgen.lower.context import Context
from gemmgen.lower.epilogue_store import row_in_tile
from gemmgen.lower.tensor_maps import output_map, slice_box
from gemmgen.lower.thread_map import rows_of_warp, slice_rows, warp_rows


def store_boxes(context: Context, node: StoreBoxes) -> tuple[Node, ...]:
    """The boxes of the slice: one, or loops over its rows and over parts of longer ones."""
    slice_ = context.buffer(node.copy.src)
    outer, inner = slice_.letters
    within: dict[str, Expr] = {}
    loops: list[tuple[Var, Expr, Expr]] = []
    stops, sides = (slice_rows(context, outer), names.block(inner)), slice_box(context, node.copy)
    for letter, stop, side in zip(slice_.letters, stops, sides, strict=True):
        cut = side < slice_.extent(letter)
        within[letter] = names.box(letter) if cut else Int(0)
        of_warp = letter == outer and 1 < side == rows_of_warp(context, outer)
        step = warp_rows(context, outer) if of_warp else Int(side)
        if slice_.atom_width and letter == inner:
            step = names.atom_width(slice_.tensor)
        loops += [(names.box(letter), stop, step)] if cut else []
    first = {
        outer: add(names.tile_origin(outer), row_in_tile(context, outer, within[outer], node.row)),
        inner: add(names.tile_origin(inner), within[inner]),
    }
    letters = context.tensor(node.copy.dst).letters
    at = tuple(first.get(letter, Var(letter)) for letter in reversed(letters))
    source, one = begin_of_box(slice_, node.stage, within), output_map(context, node.copy)
    body: Node = instruction("store_box", Var(one.parameter), source, *at)
    for variable, stop, step in reversed(loops):
        body = For(variable.name, Int(0), stop, step, (body,))
    return (body,)


LOWER = {StoreBoxes: store_boxes}
