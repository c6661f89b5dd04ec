"""The tensor maps of what TMA reads and writes, and the boxes that these copy."""

from __future__ import annotations

from gemmgen.ir.boxes import box_of, rows_together, span_of
from gemmgen.ir.clusters import share_of
from gemmgen.ir.epilogue_arithmetic import reads
from gemmgen.ir.nodes import Copy
from gemmgen.ir.tensor_map import TensorMap
from gemmgen.lower.context import Context


def maps(context: Context) -> tuple[TensorMap, ...]:
    """The maps of the tensors that TMA reads, and of that which it writes."""
    written = context.boxed_outward
    last = (output_map(context, written),) if written else ()
    return (*(_operand_map(context, copy) for copy in context.boxed_copies), *last)


def _operand_map(context: Context, copy: Copy) -> TensorMap:
    tile = context.buffer(copy.dst)
    sides = dict(zip(tile.letters, tile_box(context, copy), strict=True))
    letters = context.tensor(copy.src).letters
    box = tuple(sides.get(letter, 1) for letter in reversed(letters))
    box = (*box, 1) if tile.parts > 1 else box
    return TensorMap(copy.src, box, swizzle=span_of(tile))


def output_map(context: Context, outward: Copy) -> TensorMap:
    """The map of the output, beside its address if the epilogue reads old elements."""
    slice_ = context.buffer(outward.src)
    sides = dict(zip(slice_.letters, slice_box(context, outward), strict=True))
    letters = context.tensor(outward.dst).letters
    box = tuple(sides.get(letter, 1) for letter in reversed(letters))
    beside = reads(context.final.value, outward.dst)
    return TensorMap(outward.dst, box, beside, span_of(slice_))


def tile_box(context: Context, copy: Copy) -> tuple[int, int]:
    """Rows and columns of the boxes of an operand's tile."""
    box = box_of(share_of(context.kernel.work, context.buffer(copy.dst)))
    assert box is not None, f"{copy.dst} has no boxes"
    return box


def slice_box(context: Context, outward: Copy) -> tuple[int, int]:
    """Rows and columns of the boxes of a slice of the output."""
    slice_ = context.buffer(outward.src)
    box = box_of(slice_, rows_together(context.kernel.spread, slice_.letters[0]))
    assert box is not None, f"{outward.src} has no boxes"
    return box
