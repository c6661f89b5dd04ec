"""The named sizes of a kernel: ``constexpr int BM = 128, BN = 128, BK = 8;`` and what follows from
them."""

from __future__ import annotations

from collections.abc import Iterator

from gemmgen.expand.ring import rings
from gemmgen.ir import names
from gemmgen.ir.edit import pipeline_of
from gemmgen.ir.expr import Var
from gemmgen.ir.lowered import Constant
from gemmgen.ir.parts import inside
from gemmgen.lower import bounds
from gemmgen.lower.context import GROUPS, PARTS, THREADS, Context


def constants_of(context: Context, body: object) -> tuple[Constant, ...]:
    """Every size that ``body`` (statements, checks, arrays) names, in the order of the ladder."""
    found = (*_tile(context), *context.lowering.constants(context), *_counts(context))
    used = names_in(body) | {THREADS.name}
    kept: list[Constant] = []
    for constant in reversed(found):
        if constant.name in used:
            kept.insert(0, constant)
            used |= names_in(constant.definition)
    return tuple(kept)


def names_in(node: object) -> set[str]:
    """Every variable named anywhere in lowered code."""
    return {part.name for part in inside(node) if isinstance(part, Var)}


def _tile(context: Context) -> Iterator[Constant]:
    pipeline = pipeline_of(context.kernel)
    note = "the block's tile of C"
    if pipeline is not None:
        note += f", in steps of {names.block(pipeline.letter).name}"
    for letter in context.letters:
        yield Constant(names.block(letter).name, bounds.tile(context, letter), None, note)
    if pipeline is not None:
        yield Constant(names.block(pipeline.letter).name, pipeline.step, None, note)


def _counts(context: Context) -> Iterator[Constant]:
    for ring in rings(context.kernel, pipeline_of(context.kernel)):
        if ring.stages > 2:
            yield Constant(ring.count.name, ring.stages, None, "tiles in shared memory at a time")
    if context.kernel.work.raster > 1:
        yield Constant("GROUP", context.kernel.work.raster, None, "block rows in a band")
    if context.is_split:
        yield Constant(PARTS.name, context.kernel.work.parts, None, "blocks that share a tile")
        if context.kernel.work.groups > 1:
            yield Constant(GROUPS.name, context.kernel.work.groups, None, "of as many blocks each")
    threads = context.lowering.threads(context)
    yield Constant(THREADS.name, context.kernel.spread.threads, threads, "")
