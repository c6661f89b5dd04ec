"""What the launcher requires of a call: extents that an int can index, leading dimensions that rows
fit in, aligned pointers and rows where accesses are wide, and what the schedule assumes."""

from __future__ import annotations

from collections.abc import Iterator, Set

from gemmgen.ir.assumptions import divides, equal_to
from gemmgen.ir.blocked_letters import block, plain
from gemmgen.ir.buffers import Space
from gemmgen.ir.dtypes import BYTES
from gemmgen.ir.edit import copies, copy_outward, pipeline_of
from gemmgen.ir.interface import INT_MAX
from gemmgen.ir.param import Param
from gemmgen.ir.requirement import (
    Aligned,
    AtLeast,
    AtLeastBlocks,
    AtMost,
    Equal,
    MultipleOf,
    Requirement,
    Within,
)
from gemmgen.ir.tensor_map import ALIGNMENT, STRIDE_BOUND, TensorMap
from gemmgen.lower import addresses, bounds
from gemmgen.lower.context import Context
from gemmgen.lower.vectors import store_width

MARGIN = 16
"""Indices may run this far past a tile: a wide access looks at its last element."""


def requirements(
    context: Context,
    params: tuple[Param, ...],
    pitches: tuple[tuple[str, str], ...],
    maps: tuple[TensorMap, ...],
) -> Iterator[Requirement]:
    """What a call must satisfy; ``pitches`` are tensors and their leading dimensions."""
    yield from _ranges(context)
    for name, pitch in pitches:
        letters = next(p.indices for p in params if p.name == name)
        row = bounds.extent(context, plain(letters[-1])).name
        if (elements := block(letters[-1])) > 1:
            yield AtLeastBlocks(pitch, row, elements)
        elif pitch != row:
            yield AtLeast(pitch, row)
    mapped = {one.tensor for one in maps}
    yield from _wide(context, mapped)
    for param in params:
        if param.name in mapped:
            most = (STRIDE_BOUND - ALIGNMENT) // param.item
            strides = context.problem.strides(context.tensor(param.name)).values()
            yield from (Within(stride, 0, most) for stride in strides)
    yield from _whole_units(context)
    known = {p.name for p in params}
    for fact in context.program.facts:
        name = equal_to(context.program, fact.name)
        if fact.divisor is not None and name in known:
            yield MultipleOf(name, fact.divisor)
        if fact.equals is not None and fact.name in known and fact.equals in known:
            yield Equal(fact.name, fact.equals)


def _ranges(context: Context) -> Iterator[Requirement]:
    """Indices are ints: a tile that begins inside an extent must also end below 2^31."""
    pipeline = pipeline_of(context.kernel)
    stages = max(b.stages for b in context.kernel.buffers)
    reaches: dict[str, int] = {}
    for letter in context.tiled:
        reach = bounds.reach(context, letter)
        if pipeline is not None and letter == pipeline.letter:
            reach *= max(stages, pipeline.unroll) + context.kernel.work.parts - 1
        name = bounds.extent(context, letter).name
        reaches[name] = max(reach, reaches.get(name, 0))
    for name, reach in reaches.items():
        yield AtMost(name, INT_MAX - reach - MARGIN)


def _whole_units(context: Context) -> Iterator[Requirement]:
    """TMA stores rows in units of 16 bytes: what is after a row in its last one would
    become zeros."""
    outward = context.boxed_outward
    if outward is None:
        return
    output = context.tensor(outward.dst)
    unit, row = ALIGNMENT // BYTES[output.dtype], context.problem.extent(output.letters[-1])
    name = equal_to(context.program, row)
    stated = divides(context.program, row, unit)
    if not stated and name != addresses.pitch(context, output.name).name:
        yield MultipleOf(name, unit)


def _wide(context: Context, mapped: Set[str]) -> Iterator[Requirement]:
    """Wide accesses to global memory, and maps of ``mapped`` tensors: aligned pointers, and rows
    that keep them aligned."""
    widths, outward = dict[str, int](), copy_outward(context.kernel)
    for copy in copies(context.kernel):
        if context.buffer(copy.src).space is Space.GLOBAL:
            widths[copy.src] = max(copy.width, widths.get(copy.src, 1))
    stored = max(store_width(context.kernel, s) for s in (context.final, outward) if s)
    widths[context.output] = max(stored, widths.get(context.output, 1))
    for buffer in (b for b in context.kernel.buffers if b.parts == 1):
        width = widths.get(buffer.name, 1)
        if buffer.name in mapped:
            width = max(width, ALIGNMENT // BYTES[buffer.dtype])
        if buffer.space is Space.GLOBAL and width > 1:
            yield Aligned(buffer.name, BYTES[buffer.dtype] * width)
            yield MultipleOf(addresses.pitch(context, buffer.name).name, width)
            for stride in context.problem.strides(context.tensor(buffer.name)).values():
                yield MultipleOf(stride, width)
