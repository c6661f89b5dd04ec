"""Simplified index arithmetic has the value of what was written."""

from __future__ import annotations

import random

import pytest

from gemmgen.interpreter.expressions import compile_expression
from gemmgen.interpreter.scope import Scope, known
from gemmgen.ir.expr import Binary, BinaryOp, Expr, Int, Var, walk
from gemmgen.ir.simplify import add, simplify

NAMES = ("tid", "BK", "k")
OPERATORS: tuple[BinaryOp, ...] = ("+", "-", "*", "/", "%", "^", "<<")


def value(expr: Expr, names: dict[str, int]) -> int:
    scope = Scope()
    for name, number in names.items():
        scope.bind(name, known(number, "int"))
    found = compile_expression(expr, scope).known
    assert isinstance(found, int)
    return found


def drawn(rng: random.Random, depth: int) -> Expr:
    """Operands are small, so that 0 and 1 are frequent; no difference is negative, no divisor 0."""
    if depth == 0 or rng.random() < 0.2:
        return Var(rng.choice(NAMES)) if rng.random() < 0.5 else Int(rng.choice((0, 1, 2, 7)))
    op = rng.choice(OPERATORS)
    left, right = drawn(rng, depth - 1), drawn(rng, depth - 1)
    if op == "-":
        left = Binary("+", right, left)
    if op in "/%":
        right = rng.choice((Int(1), Int(4), Var("BK")))
    if op == "<<":
        right = Int(rng.choice((0, 1, 3)))
    return Binary(op, left, right)


@pytest.mark.parametrize("seed", range(8))
def test_keeps_values(seed: int) -> None:
    rng = random.Random(seed)
    shorter = 0
    for _ in range(100):
        names = {"tid": rng.randrange(256), "BK": rng.randrange(1, 33), "k": rng.randrange(3)}
        expr, other = drawn(rng, 4), drawn(rng, 3)
        less = simplify(expr)
        assert value(less, names) == value(expr, names), expr
        assert simplify(less) == less
        total = Binary("+", Binary("+", expr, other), expr)
        assert value(add(expr, other, expr), names) == value(total, names)
        shorter += len(list(walk(less))) < len(list(walk(expr)))
    assert shorter > 30
