"""Epilogues that jump: ``round`` and comparisons of numbers that were rounded before.

Near a tie, or a number that is compared, two roundings of one formula may lie on different sides.
Which elements are so near is found by moving what is rounded or compared a little both ways.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from gemmgen.ir.expr import Binary, Call, Expr, Var, transform, walk
from gemmgen.ir.problem import Problem
from gemmgen.numerics.formats import F64
from gemmgen.numerics.operators import COMPARE, Bools, Floats

MOVED = "the move of an operand"
"""The variable by which an operand is moved: no name of a schedule."""


def jump_bound(
    problem: Problem,
    result: Callable[[Expr, F64], Floats],
    exact: F64,
    unit: float,
    peak: float,
    whole: Bools,
) -> F64:
    """How far C may be from ``exact`` since a jump's operand is rounded: by how much C changes if
    the operand moves by some ``unit``s of the greatest number that is computed with, ``peak``.

    ``result`` evaluates an expression in f64 with a value for ``MOVED``.  No operand moves in
    the elements of ``whole``, in which nothing rounds.
    """
    found = np.zeros(exact.shape)
    still = np.zeros(exact.shape)
    for operand, moved in _moved(problem.epilogue):
        own = np.abs(result(operand, still))
        scale = float(own[np.isfinite(own)].max(initial=peak))
        for sign in (-1.0, 1.0):
            other = result(moved, np.where(whole, 0.0, sign * unit * scale))
            with np.errstate(invalid="ignore"):
                found += np.nan_to_num(np.abs(other - exact), nan=0.0, posinf=0.0)
    return found


def _moved(epilogue: Expr) -> Iterator[tuple[Expr, Expr]]:
    """Each operand that is rounded or compared, and the epilogue in which that one is moved."""
    for node in walk(epilogue):
        match node:
            case Call("round", (operand,)):
                other: Expr = Call("round", (operand + Var(MOVED),))
            case Binary(op, operand, right) if op in COMPARE:
                other = Binary(op, operand + Var(MOVED), right)
            case _:
                continue

        def rule(expr: Expr, old: Expr = node, new: Expr = other) -> Expr | None:
            return new if expr is old else None

        yield operand, transform(epilogue, rule)
