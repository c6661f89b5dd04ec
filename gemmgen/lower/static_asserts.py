"""The ``static_assert``s that a reader would ask of a kernel's constants."""

from __future__ import annotations

from collections.abc import Iterator

from gemmgen.ir import names
from gemmgen.ir.expr import Binary, Expr, Int
from gemmgen.ir.lowered import Check
from gemmgen.ir.simplify import all_of, mod, mul
from gemmgen.ir.target import MAX_THREADS
from gemmgen.lower.context import THREADS, Context
from gemmgen.lower.thread_map import ThreadMap, all_thread_maps


def static_asserts_of(context: Context) -> tuple[Check, ...]:
    """Conditions that hold of this kernel's constants, and break if a reader edits them badly."""
    found = (*context.lowering.checks(context), *_whole_tiles(context))
    if context.leaves_early:
        return found
    fits = Binary("<=", THREADS, Int(MAX_THREADS))
    return (*found, Check(fits, "a block has at most 1024 threads"))


def _whole_tiles(context: Context) -> Iterator[Check]:
    """The threads' copies fill the tiles, where no guard asks which of them lie inside."""
    exact = [m for m in all_thread_maps(context) if m.is_regular and m.is_exact]
    single = [m for m in exact if m.count * m.turns == 1]
    condition = all_of(*(Binary("==", mul(m.count_name, m.vector), _elements(m)) for m in single))
    if condition is not None:
        yield Check(condition, "the threads copy whole tiles")
    for one in (m for m in exact if m not in single):
        rows = mul(one.vectors, one.step) if one.count > 1 else one.step
        filled = Binary("==", rows, one.height)
        condition = both(divides(one.count_name, one.shared_row), filled)
        yield Check(condition, f"the threads copy whole tiles of {one.tensor}")


def _elements(copied: ThreadMap) -> Expr:
    return mul(copied.height, names.block(copied.column))


def divides(whole: Expr, part: Expr) -> Expr:
    return Binary("==", mod(whole, part), Int(0))


def both(first: Expr, second: Expr) -> Expr:
    return Binary("&&", first, second)
