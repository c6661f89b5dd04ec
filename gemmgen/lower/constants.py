"""The named sizes of a kernel: ``constexpr int BM = 128, BN = 128, BK = 8;`` and what follows from
them."""

from __future__ import annotations

from collections.abc import Iterator

from gemmgen.expand.ring import rings
from gemmgen.ir import names
from gemmgen.ir.buffers import Space
from gemmgen.ir.edit import pipeline_of, promotion_of
from gemmgen.ir.expr import Expr, Int
from gemmgen.ir.lowered import Constant
from gemmgen.ir.occupancy import registers_by_role
from gemmgen.ir.simplify import add, mul
from gemmgen.ir.target import WARPGROUP
from gemmgen.ir.traversal import names_in
from gemmgen.lower import bounds, boxes
from gemmgen.lower.context import GROUPS, PARTS, THREADS, Context
from gemmgen.lower.thread_map import NOTES, all_thread_maps, slice_rows_constant

FIRST_NAMED_BARRIER = 1
"""The block's barrier, ``__syncthreads``, is number 0."""


def constants_of(context: Context, body: object) -> tuple[Constant, ...]:
    """Every size that ``body`` (statements, checks, arrays, the launch) names, in the order of the
    ladder."""
    found = (
        *_tile(context),
        *context.lowering.constants(context),
        *_vectors(context),
        *_counts(context),
        *_copies(context),
        *boxes.constants(context),
    )
    used = names_in(body)
    kept: list[Constant] = []
    for constant in reversed(found):
        if constant.name in used:
            kept.insert(0, constant)
            used |= names_in(constant.definition)
    return tuple(kept)


def _tile(context: Context) -> Iterator[Constant]:
    pipeline = pipeline_of(context.kernel)
    note = "threadblock tile of C"
    if pipeline is not None:
        note += f", and its step along {bounds.extent(context, pipeline.letter).name}"
    for letter in context.letters:
        yield Constant(names.block(letter).name, bounds.tile(context, letter), None, note)
    if pipeline is not None:
        yield Constant(names.block(pipeline.letter).name, pipeline.step, None, note)


def _vectors(context: Context) -> Iterator[Constant]:
    for name, width in sorted(set(context.vectors.values()), key=lambda one: one[0].name):
        yield Constant(name.name, width, None, "elements of a vector access")
    for buffer in context.kernel.buffers:
        if buffer.space is Space.SHARED and buffer.pad:
            name = names.pad(buffer.tensor).name
            yield Constant(name, buffer.pad, None, "padding elements of each row")
    for buffer in context.kernel.buffers:
        if buffer.atom_width:
            name = names.atom_width(buffer.tensor).name
            yield Constant(name, buffer.atom_width, None, "elements of a swizzle atom's row")

    yield from slice_rows_constant(context)


def _copies(context: Context) -> Iterator[Constant]:
    """How a block's threads share out the tiles that they copy; of all tiles note by note."""
    of_each = [thread_map.constants() for thread_map in all_thread_maps(context)]
    for note in NOTES:
        yield from (c for constants in of_each for c in constants if c.note == note)


def _counts(context: Context) -> Iterator[Constant]:
    for ring in rings(context.kernel, pipeline_of(context.kernel)):
        if ring.stages > 2:
            yield Constant(ring.count.name, ring.stages, None, "tiles in shared memory")
    split = next((b.parts for b in context.kernel.buffers if b.parts > 1), 1)
    if split > 1:
        yield Constant(names.SPLIT.name, split, None, "parts of an element")
    if context.kernel.work.raster > 1:
        note = "block rows in a group"
        if context.kernel.work.cluster:
            note = "rows of clusters in a group"
        if context.kernel.work.order == "hilbert":
            note += (
                f", and {'' if context.kernel.work.cluster else 'block '}columns in a square of it"
            )
        yield Constant("GROUP", context.kernel.work.raster, None, note)
    promotion = promotion_of(context.kernel)
    if promotion is not None:
        yield Constant(names.PROMOTE.name, promotion.every, None, "promotion interval, in terms")
    yield from boxes.cluster_constants(context)
    if context.is_split:
        yield Constant(PARTS.name, context.kernel.work.parts, None, "blocks that split K of a tile")
        if context.kernel.work.groups > 1:
            yield Constant(
                GROUPS.name, context.kernel.work.groups, None, "groups in which they reduce"
            )
    threads = context.lowering.threads(context)
    yield Constant(names.WARPGROUP.name, WARPGROUP, None, "threads of a warpgroup")
    if context.has_roles:
        yield from _roles(context, threads)
        threads = add(
            names.CONSUMERS, mul(Int(context.kernel.producers.warpgroups), names.WARPGROUP)
        )
    yield Constant(THREADS.name, context.kernel.threads, threads, "")


def _roles(context: Context, threads: Expr) -> Iterator[Constant]:
    """The threads and registers of each role; ``threads`` multiply a tile."""
    kernel = context.kernel
    if kernel.producers.pingpong > 1:
        note = "consumers that alternate"
        yield Constant(names.CONSUMER_GROUPS.name, kernel.producers.pingpong, None, note)
        yield Constant(names.CONSUMER.name, kernel.spread.threads, threads, "threads of a consumer")
        threads = names.CONSUMER_GROUPS * names.CONSUMER
    yield Constant(names.CONSUMERS.name, kernel.consumers, threads, "threads of all consumers")
    note = "named barrier of the consumers; 0 is __syncthreads"
    yield Constant(names.CONSUMER_BARRIER.name, FIRST_NAMED_BARRIER, None, note)
    registers = registers_by_role(kernel, context.program.target)
    if registers is not None:
        both = names.PRODUCER_REGISTERS, names.CONSUMER_REGISTERS
        for name, count in zip(both, registers, strict=True):
            yield Constant(name.name, count, None, "registers of a thread")
