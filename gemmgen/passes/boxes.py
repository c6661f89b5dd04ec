"""The rules of TMA (``via=tma``) for a tile and its boxes, each with a refusal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from math import prod

from gemmgen.base.errors import Refusal
from gemmgen.base.source import indexed, remainder
from gemmgen.ir.boxes import box_of, lands_at, tma_swizzle
from gemmgen.ir.buffers import Buffer
from gemmgen.ir.dtypes import BYTES
from gemmgen.ir.edit import copies, pipeline_of
from gemmgen.ir.nodes import Copy, Kernel
from gemmgen.ir.problem import Tensor
from gemmgen.ir.tensor_map import ALIGNMENT, LANDS_AT, LONGEST_SIDE, RANKS
from gemmgen.passes.base import OperandArgument
from gemmgen.schedule.formatting import format_sizes

LARGER = (1, 2, 4, 8)
"""How many times as long a tile's sides are that a hint tries."""
OTHERWISE = "via=cp_async"
"""The way of copying without these rules."""


def check_boxes(kernel: Kernel, fact: OperandArgument, tile: Buffer, copy: Copy) -> None:
    """Raises ``Refusal`` if boxes of the tensor can't land as the tile lies."""
    tensor, source = fact.tensor, kernel.buffer(copy.src)
    if tile.letters != source.letters:
        order = indexed(tensor, source.letters)
        raise Refusal(
            f"async_copy {tensor} via=tma: TMA cannot transpose",
            at=fact.operand.span,
            notes=(f"{order} would land as {order}, and {indexed(tile.name, tile.letters)} is",),
            hint=f"cache_shared {order}, or {OTHERWISE}",
        )
    if tile.pad:
        raise Refusal(
            f"async_copy {tensor} via=tma: TMA writes rows without padding",
            at=fact.operand.span,
            notes=(f"rows of {tile.extent(tile.letters[-1])} elements, {tile.pad} after each",),
            hint=f"leave pad out, or {OTHERWISE}",
        )
    if copy.width > 1:
        raise Refusal(
            f"async_copy {tensor} via=tma: no thread reads {tensor} from global memory",
            at=fact.operand.span,
            notes=(f"vectorize makes the threads' own copies {copy.width} wide",),
            hint=_narrower(kernel, tensor, tile),
        )
    found = _misfit(tile)
    if found is not None:
        larger = _fitting(kernel)
        raise Refusal(
            f"async_copy {tensor} via=tma: {found[0]}",
            at=fact.operand.span,
            notes=found[1:],
            hint=f"{larger}, or {OTHERWISE}" if larger else OTHERWISE,
        )


def check_rank(tensor: Tensor, fact: OperandArgument, otherwise: str = OTHERWISE) -> None:
    """Raises ``Refusal`` if a tensor has more letters than a map has dimensions."""
    most = RANKS.stop - 1
    if len(tensor.letters) > most:
        text = indexed(tensor.name, tensor.letters)
        raise Refusal(
            f"async_copy {tensor.name} via=tma: a tensor map has at most {most} dimensions",
            at=fact.operand.span,
            notes=(f"{text} has {len(tensor.letters)}",),
            hint=otherwise,
        )


def _narrower(kernel: Kernel, tensor: str, tile: Buffer) -> str:
    """The hint that leaves a tensor's reads of shared memory as wide as they are."""
    widths = [c.width for c in copies(kernel) if c.src == tile.name and c.width > 1]
    return f"vectorize {tensor}.shared width={widths[0]}" if widths else "leave vectorize out"


def _misfit(tile: Buffer) -> tuple[str, ...] | None:
    """The error in a tile's extents, with the arithmetic."""
    outer, inner = tile.letters
    rows, columns, size = tile.extent(outer), tile.row, BYTES[tile.dtype]
    row = columns * size
    if row % ALIGNMENT:
        return (
            f"rows of a TMA box are multiples of {ALIGNMENT} bytes",
            f"a row of {tile.name} has {columns} x {size} = {row} bytes along {inner}, and "
            f"{remainder(row, ALIGNMENT)}",
        )
    lands = lands_at(tile)
    if rows * row % lands:
        box = f"a box with swizzled rows of {row} bytes" if tile.swizzle else "a box"
        part = f"{'an atom column' if tile.atom_width else 'a stage'} of {tile.name}"
        return (
            f"{box} lands at a multiple of {lands} bytes",
            f"{part} has {rows} x {columns} x {size} = {rows * row} bytes, and "
            f"{remainder(rows * row, lands)}",
        )
    if tile.swizzle and tile.swizzle != tma_swizzle(columns, tile.dtype):
        return (f"rows of {row} bytes are permuted in another way",)
    if box_of(tile) is None:
        return (
            f"a TMA box has at most {LONGEST_SIDE} elements along {inner}",
            f"no part of a row of {columns} x {size} bytes is a multiple of {LANDS_AT} bytes and "
            "divides it",
        )
    return None


def _fitting(kernel: Kernel) -> str | None:
    """The ``tile`` with the smallest sides, multiples of the present ones, whose boxes land."""
    pipeline = pipeline_of(kernel)
    assert pipeline is not None
    sides = (*kernel.work.tile, (pipeline.letter, pipeline.step))
    for factors in sorted(product(LARGER, repeat=len(sides)), key=lambda x: (prod(x), x)):
        sizes = {x: side * factor for (x, side), factor in zip(sides, factors, strict=True)}
        if all(_misfit(tile) is None for tile in _resized(kernel, sizes)):
            return f"tile {format_sizes(sizes.items())}"
    return None


def _resized(kernel: Kernel, sizes: dict[str, int]) -> Iterator[Buffer]:
    """The pipeline's tiles with other extents."""
    pipeline = pipeline_of(kernel)
    for copy in pipeline.produce if pipeline else ():
        tile = kernel.buffer(copy.dst)
        yield replace(tile, shape=tuple((letter, sizes[letter]) for letter in tile.letters))
