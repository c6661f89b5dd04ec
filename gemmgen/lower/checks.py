"""The ``static_assert``s that a reader would ask of a kernel's constants."""

from __future__ import annotations

from collections.abc import Iterator

from gemmgen.ir import names
from gemmgen.ir.expr import Binary, Expr, Int
from gemmgen.ir.lowered import Check
from gemmgen.ir.simplify import mod, mul
from gemmgen.ir.target import MAX_THREADS, WARP
from gemmgen.lower.context import THREADS, Context


def checks_of(context: Context) -> tuple[Check, ...]:
    """Conditions that hold of this kernel's constants, and break if a reader edits them badly."""
    return tuple(_checks(context))


def _checks(context: Context) -> Iterator[Check]:
    m, n = context.letters
    if context.by_fragments:
        parts = (_divides(names.warp(x), names.instruction(x)) for x in (m, n))
        yield Check(_both(*parts), "the fragments fill a warp's tile")
        k = context.problem.k
        yield Check(_divides(names.block(k), names.instruction(k)), "the steps fill the tile")
    elif not context.scalar_sums:
        whole = names.warp if context.has_warps else names.block
        parts = (_divides(whole(x), names.registers(x)) for x in (m, n))
        yield Check(_both(*parts), "the micro-tiles fill the tile")
        if context.has_warps:
            lanes = mul(names.lanes(m), names.lanes(n))
            yield Check(Binary("==", lanes, Int(WARP)), "a warp's threads fill its tile")
    if not context.leaves_early:
        yield Check(Binary("<=", THREADS, Int(MAX_THREADS)), "a block has at most 1024 threads")


def _divides(whole: Expr, part: Expr) -> Expr:
    return Binary("==", mod(whole, part), Int(0))


def _both(first: Expr, second: Expr) -> Expr:
    return Binary("&&", first, second)
