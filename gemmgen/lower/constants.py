"""The named sizes of a kernel: ``constexpr int BM = 128, BN = 128, BK = 8;`` and what follows from
them."""

from __future__ import annotations

from collections.abc import Iterator

from gemmgen.expand.ring import rings
from gemmgen.ir import names
from gemmgen.ir.atoms import ATOMS
from gemmgen.ir.edit import contraction, pipeline_of
from gemmgen.ir.expr import Binary, Expr, Int, Var
from gemmgen.ir.lowered import Constant
from gemmgen.ir.parts import inside
from gemmgen.ir.simplify import div
from gemmgen.ir.target import WARP
from gemmgen.lower import bounds
from gemmgen.lower.context import GROUPS, PARTS, THREADS, Context


def constants_of(context: Context, body: object) -> tuple[Constant, ...]:
    """Every size that ``body`` (statements, checks, arrays) names, in the order of the ladder."""
    shares = _fragments(context) if context.by_fragments else _micro_tile(context)
    found = (*_tile(context), *_warps(context), *shares, *_counts(context))
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


def _warps(context: Context) -> Iterator[Constant]:
    if context.has_warps:
        for letter in context.letters:
            axis = context.axis(letter)
            size = axis.extent // axis.warps
            yield Constant(names.warp(letter).name, size, None, "a warp's share of it")


def _micro_tile(context: Context) -> Iterator[Constant]:
    if context.scalar_sums:
        return
    for letter in context.letters:
        registers = context.axis(letter).registers
        owner = "warp" if context.by_lanes else "thread"
        yield Constant(names.registers(letter).name, registers, None, f"a {owner}'s share")
    if context.by_lanes:
        yield from _terms(context)
    interleaved = [x for x in context.letters if context.axis(x).pieces > 1]
    for letter in interleaved:
        width = context.axis(letter).width
        if width > 1:
            note = "in pieces of this many neighbours"
            yield Constant(names.piece(letter).name, width, None, note)


def _terms(context: Context) -> Iterator[Constant]:
    """A lane's terms of a step, in pieces of neighbours, and the lanes that share a sum."""
    k = context.problem.k
    axis = context.axis(k)
    yield Constant(names.lanes(k).name, axis.lanes, None, "lanes that share its sums")
    share = div(names.block(k), names.lanes(k))
    yield Constant(names.registers(k).name, axis.registers, share, "a lane's terms of a step")
    if axis.pieces > 1 and axis.width > 1:
        note = "in pieces of this many neighbours"
        yield Constant(names.piece(k).name, axis.width, None, note)


def _fragments(context: Context) -> Iterator[Constant]:
    """What an instruction multiplies, and how many of it a warp's tile has along each side."""
    atom = ATOMS[contraction(context.kernel).atom]
    problem = context.problem
    for letter, side in ((problem.m, atom.m), (problem.n, atom.n), (problem.k, atom.k)):
        name = names.instruction(letter).name
        yield Constant(name, side, None, "what one instruction multiplies")
    for letter in context.letters:
        count = div(names.warp(letter), names.instruction(letter))
        name = names.fragments(letter).name
        yield Constant(name, context.axis(letter).pieces, count, "a warp's fragments")


def _counts(context: Context) -> Iterator[Constant]:
    spread, note = context.kernel.spread, "threads along each side"
    if context.by_lanes:
        note = "warps along each side"
    if not (context.scalar_sums or context.by_fragments):
        within = "of a warp" if context.has_warps else "of the block"
        for letter in context.letters:
            whole = names.warp(letter) if context.has_warps else names.block(letter)
            value = context.axis(letter).lanes
            share = div(whole, names.registers(letter))
            yield Constant(names.lanes(letter).name, value, share, f"{note} {within}")
    for ring in rings(context.kernel, pipeline_of(context.kernel)):
        if ring.stages > 2:
            yield Constant(ring.count.name, ring.stages, None, "tiles in shared memory at a time")
    if context.kernel.work.raster > 1:
        yield Constant("GROUP", context.kernel.work.raster, None, "block rows in a band")
    if context.is_split:
        yield Constant(PARTS.name, context.kernel.work.parts, None, "blocks that share a tile")
        if context.kernel.work.groups > 1:
            yield Constant(GROUPS.name, context.kernel.work.groups, None, "of as many blocks each")
    yield Constant(THREADS.name, spread.threads, _threads(context), "")


def _threads(context: Context) -> Expr:
    """The number of threads, as the text computes it."""
    m, n = context.letters
    if context.scalar_sums:
        return Binary("*", names.block(m), names.block(n))
    if context.by_lanes:
        warps = Binary("*", names.lanes(m), names.lanes(n))
        return Binary("*", warps, names.lanes(context.problem.k))
    if not context.has_warps:
        return Binary("*", names.lanes(m), names.lanes(n))
    warps = (div(names.block(letter), names.warp(letter)) for letter in (m, n))
    return Binary("*", Binary("*", next(warps), next(warps)), Int(WARP))
