"""Two programs, run by the interpreter on the same numbers: a rewrite keeps what is computed."""

from __future__ import annotations

from dataclasses import replace

from gemmgen.calling.launches import Case
from gemmgen.ir.launch_shape import Shape, spelled
from gemmgen.ir.lowered import LoweredProgram
from gemmgen.ir.nodes import Program
from gemmgen.ir.problem import Problem
from gemmgen.numerics.formats import numbers
from gemmgen.numerics.reference import compare
from gemmgen.pipeline import make_concrete
from gemmgen.proof import verdicts
from gemmgen.proof.equivalence import Difference, nearest, result_of, same_meaning
from gemmgen.proof.shapes import ring_of, tile_of
from gemmgen.proof.sums import Summation


def difference(before: Program, after: Program) -> str | None:
    """Where one of two programs is not their problem on integers, whose sums are exact, or where
    one gives other bits than the other on numbers whose sums are rounded; in words."""
    problem, programs = after.problem.written, (before, after)
    assert before.problem.written == problem, "a rewrite does not change what is computed"
    lowered = tuple(make_concrete(program) for program in programs)
    shapes, ordered = shapes_of(after, lowered), order_of(before) == order_of(after)

    def prove() -> str | None:
        for shape in shapes:
            for name, each in zip(("before", "after"), lowered, strict=True):
                found = same_meaning(each, problem, shape)
                if found is not None:
                    return f"{name}, {spelled(shape)}: {found.text()}"
            other = other_bits(lowered, problem, shape) if ordered else None
            if other is not None:
                return f"{spelled(shape)}: {other}"
        return None

    return verdicts.complaint_of(prove, "rewriting", lowered, problem, shapes, ordered)


def shapes_of(program: Program, lowered: tuple[LoweredProgram, ...]) -> tuple[Shape, ...]:
    """Several ragged tiles and more steps than stages, less than a tile, and whole tiles."""
    m, n, k, _ = tile_of(program)
    wanted = ((m + 1, n + 3, ring_of(program) + 1, 2, 3), (3, 5, k // 2 + 1, 3, 2), (m, n, 2 * k))
    count = len(program.problem.letters)
    shapes = ((*shape, 1, 2)[:count] for shape in wanted)
    return tuple(dict.fromkeys(nearest(lowered, program.problem, shape) for shape in shapes))


def order_of(program: Program) -> tuple[Summation, str]:
    """The order in which products are added, as far as bits depend on it."""
    order = Summation.of(program)
    whole = order.parts == 1 and not order.width
    return replace(order, step=1) if whole else order, program.main.spread.atom


def other_bits(lowered: tuple[LoweredProgram, ...], problem: Problem, shape: Shape) -> str | None:
    """Where two programs' results differ in a bit, in words."""
    case = Case(shape, "normal", 0.7, -1.25, 3)
    before, after = (result_of(each, problem, case) for each in lowered)
    if isinstance(before, Difference) or isinstance(after, Difference):
        stopped = before if isinstance(before, Difference) else after
        assert isinstance(stopped, Difference)
        return stopped.text()
    dtype = problem.c.dtype
    compared = compare(after.c, numbers(before.c, dtype), dtype=dtype)
    return None if compared.equal else f"before and after: {compared.text()}"
