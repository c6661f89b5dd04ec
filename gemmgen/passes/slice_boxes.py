"""The rules of TMA for the staging slice of C (``async_copy C via=tma``), each with a refusal."""

from __future__ import annotations

from dataclasses import replace

from gemmgen.base.errors import Refusal
from gemmgen.base.source import remainder
from gemmgen.ir.boxes import box_of, lands_at, rows_together, with_type
from gemmgen.ir.buffers import Buffer, Spread
from gemmgen.ir.dtypes import BYTES, DType
from gemmgen.ir.edit import pipeline_of
from gemmgen.ir.nodes import Copy, Kernel, Map
from gemmgen.ir.tensor_map import ALIGNMENT, LANDS_AT, LONGEST_SIDE
from gemmgen.passes.base import OperandArgument
from gemmgen.schedule.formatting import format_sizes

FACTORS = (2, 4, 8, 16, 32, 64)
"""How many times as long a hint makes a slice's rows."""


def by_threads(tensor: str) -> str:
    """The epilogue store that has none of these limits."""
    return f"leave {tensor} out of async_copy"


def check_slice(kernel: Kernel, dtype: DType, fact: OperandArgument, outward: Copy) -> None:
    """Raises ``Refusal`` if no boxes cover the slice of the output that ``outward`` copies.

    ``dtype`` is that of C; the slice may still be of the temporary's before an epilogue is fused.
    """
    tensor, slice_ = fact.tensor, kernel.buffer(outward.src)
    (final,) = (s for s in kernel.body if isinstance(s, Map))
    if outward.width > final.width == 1:
        raise Refusal(
            f"async_copy {tensor} via=tma: no thread stores {tensor} to global memory",
            at=fact.operand.span,
            notes=(
                f"vectorize makes the threads' own stores {outward.width} wide, and a thread's "
                "elements are single",
            ),
            hint=f"leave {tensor} out of vectorize",
        )
    for held in dict.fromkeys((dtype, slice_.dtype)):
        tile = with_type(slice_, held)
        found = _misfit(tile, kernel.spread)
        if found is not None:
            larger = _fitting(kernel, tile)
            otherwise = f"leave {tensor} out of swizzle" if tile.swizzle else by_threads(tensor)
            raise Refusal(
                f"async_copy {tensor} via=tma: {found[0]}",
                at=fact.operand.span,
                notes=found[1:],
                hint=f"{larger}, or {otherwise}" if larger else otherwise,
            )


def _misfit(slice_: Buffer, spread: Spread) -> tuple[str, str] | None:
    """The error in a slice's extents, with the arithmetic."""
    outer, inner = slice_.letters
    columns, size = slice_.row, BYTES[slice_.dtype]
    row, together, lands = columns * size, rows_together(spread, outer), lands_at(slice_)
    axis = spread.axis(outer)
    if row % ALIGNMENT:
        return (
            f"rows of a TMA box are multiples of {ALIGNMENT} bytes",
            f"a row of {slice_.name} has {columns} x {size} = {row} bytes along {inner}, and "
            f"{remainder(row, ALIGNMENT)}",
        )
    if box_of(slice_, together) is not None:
        return None
    if columns > LONGEST_SIDE:
        return (
            f"a TMA box has at most {LONGEST_SIDE} elements along {inner}",
            f"no part of a row of {columns} x {size} bytes is a multiple of {LANDS_AT} bytes and "
            "divides it",
        )
    factors, each = f"{columns} x {size}", f"a row of {slice_.name}, which is"
    next_one = f"as the next one is that of the element {axis.width} further along {outer}"
    if together > 1:
        factors, each = f"{together} x {factors}", f"{together} rows of {slice_.name}, which are"
        next_one = "as the next ones are another warp's"
    box = "a swizzled box" if slice_.swizzle else "a box"
    return (
        f"{box} leaves from a multiple of {lands} bytes",
        f"{each} a box of {factors} = {together * row} bytes, {next_one}; "
        f"{remainder(together * row, lands)}",
    )


def _fitting(kernel: Kernel, slice_: Buffer) -> str | None:
    """The ``tile`` with the shortest rows, multiples of the present ones, that boxes cover."""
    outer, inner = slice_.letters
    rows, columns = slice_.extent(outer), slice_.extent(inner)
    pipeline = pipeline_of(kernel)
    step = ((pipeline.letter, pipeline.step),) if pipeline else ()
    for factor in FACTORS:
        shape = ((outer, rows), (inner, columns * factor))
        longer = with_type(replace(slice_, shape=shape), slice_.dtype)
        if _misfit(longer, kernel.spread) is None:
            sides = dict(kernel.work.tile) | {inner: columns * factor} | dict(step)
            return f"tile {format_sizes(sides.items())}"
    return None
