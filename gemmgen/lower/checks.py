"""The ``static_assert``s that a reader would ask of a kernel's constants."""

from __future__ import annotations

from collections.abc import Iterator

from gemmgen.ir import names
from gemmgen.ir.expr import Binary, Expr, Int
from gemmgen.ir.lowered import Check
from gemmgen.ir.simplify import mod, mul
from gemmgen.lower.context import THREADS, Context


def checks_of(context: Context) -> tuple[Check, ...]:
    """Conditions that hold of this kernel's constants, and break if a reader edits them badly."""
    return tuple(_checks(context))


def _checks(context: Context) -> Iterator[Check]:
    if not context.scalar_sums:
        divides: Expr | None = None
        for letter in context.letters:
            whole = names.warp(letter) if context.has_warps else names.block(letter)
            rest = Binary("==", mod(whole, names.registers(letter)), Int(0))
            divides = rest if divides is None else Binary("&&", divides, rest)
        assert divides is not None
        yield Check(divides, "the micro-tiles fill the tile")
    if context.has_warps and not context.scalar_sums:
        m, n = context.letters
        lanes = mul(names.lanes(m), names.lanes(n))
        yield Check(Binary("==", lanes, Int(32)), "a warp's threads fill its tile")
    if not context.leaves_early:
        yield Check(Binary("<=", THREADS, Int(1024)), "a block has at most 1024 threads")
