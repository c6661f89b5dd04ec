"""Floating-point operations as textbooks count them, and what fusing an epilogue saves.

An element of A B is a sum of K products: K multiplications and K - 1 additions, MN(2K - 1) in all.
``alpha * acc + beta * C[m, n]`` is two multiplications and an addition for each element of C, 3MN,
so that a GEMM has 2MN(K + 1) operations.  Documents that add 2MN for alpha and beta, and come to
MN(2K + 1), leave out the addition of alpha A B to beta C.  Throughputs are stated in 2MNK, which is
what cuBLAS's are compared by: K multiply-adds for each element, the first of them added to 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import prod

from gemmgen.analyze import formulas
from gemmgen.analyze.launch_arguments import Shape
from gemmgen.base.record import record
from gemmgen.base.source import counted
from gemmgen.ir.dtypes import BYTES
from gemmgen.ir.expr import Binary, Call, Element, Expr, Select, Unary, Var, children
from gemmgen.ir.exprtext import format_expression
from gemmgen.ir.problem import Problem, default_epilogue

_NAMES = {"*": "multiplication", "+": "addition", "-": "subtraction", "/": "division"}


@record
class Operations:
    """``product``: of A B; ``epilogue``: of the expression of that name, whose operations for an
    element of C are ``each``, by name.  The formulas are ``MN(2K - 1)``, ``3MN``, ``MN(2K + 2)``.
    """

    product: int
    epilogue: int
    expression: str
    each: tuple[tuple[str, int], ...]
    product_formula: str
    epilogue_formula: str
    formula: str

    @property
    def total(self) -> int:
        return self.product + self.epilogue

    @property
    def spelled(self) -> str:
        """``2 multiplications and 1 addition``."""
        return " and ".join(counted(count, name) for name, count in self.each)


@record
class Unfused:
    """What ``kernels`` elementwise kernels, one per operation of the epilogue, add to a plain
    product: ``elements`` reads and writes of C in all."""

    names: tuple[str, ...]
    elements: int
    bytes: int

    @property
    def kernels(self) -> int:
        return len(self.names)


def operations_of(problem: Problem, shape: Shape) -> Operations:
    """The operations of the problem as it is written, whatever alpha and beta are."""
    m, n, k, *batches = shape
    results = m * n * prod(batches)
    found = Counter(name for name, _ in _steps(problem.epilogue))
    each = sum(found.values())
    elements, depth = formulas.elements_of(problem), problem.extent(problem.k)
    twice = f"2{depth}" if len(depth) == 1 else f"2*{depth}"
    rest = {1: f"({twice})"}.get(each, f"({twice} {'+' if each else '-'} {abs(each - 1)})")
    return Operations(
        results * (2 * k - 1),
        results * each,
        format_expression(problem.epilogue),
        tuple(found.items()),
        f"{elements}({twice} - 1)",
        formulas.times(each, elements) if each > 1 else elements,
        f"{elements}{rest}",
    )


def unfused(problem: Problem, shape: Shape) -> Unfused | None:
    """None for a product as BLAS has it, which needs no further kernel."""
    if problem.epilogue in (default_epilogue(problem.c), Var("acc")):
        return None
    names = tuple(name for name, expr in _steps(problem.epilogue) if _has_sum(expr))
    if not names:
        return None
    m, n, _, *batches = shape
    elements = 2 * len(names) * m * n * prod(batches)
    return Unfused(names, elements, elements * BYTES[problem.c.dtype])


def _steps(expr: Expr) -> Iterator[tuple[str, Expr]]:
    """The operations for one element, innermost first; indices of tensors are not computed with."""
    if isinstance(expr, Element):
        return
    for child in children(expr):
        yield from _steps(child)
    match expr:
        case Binary(op, _, _):
            yield _NAMES.get(op, "comparison"), expr
        case Call(function, _):
            yield function, expr
        case Unary("-", _):
            yield "negation", expr
        case Select():
            yield "selection", expr
        case _:
            pass


def _has_sum(expr: Expr) -> bool:
    return expr == Var("acc") or any(map(_has_sum, children(expr)))
