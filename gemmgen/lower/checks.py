"""The ``static_assert``s that a reader would ask of a kernel's constants."""

from __future__ import annotations

from gemmgen.ir.expr import Binary, Expr, Int
from gemmgen.ir.lowered import Check
from gemmgen.ir.simplify import mod
from gemmgen.ir.target import MAX_THREADS
from gemmgen.lower.context import THREADS, Context


def checks_of(context: Context) -> tuple[Check, ...]:
    """Conditions that hold of this kernel's constants, and break if a reader edits them badly."""
    found = tuple(context.lowering.checks(context))
    if context.leaves_early:
        return found
    fits = Binary("<=", THREADS, Int(MAX_THREADS))
    return (*found, Check(fits, "a block has at most 1024 threads"))


def divides(whole: Expr, part: Expr) -> Expr:
    return Binary("==", mod(whole, part), Int(0))


def both(first: Expr, second: Expr) -> Expr:
    return Binary("&&", first, second)
