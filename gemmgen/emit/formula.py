"""One sentence on what a kernel computes: the first line of its text."""

from __future__ import annotations

from gemmgen.ir.exprtext import format_expression
from gemmgen.ir.nodes import Program
from gemmgen.ir.problem import Problem


def formula_comment(program: Program) -> str:
    """``gemm: C[m, n] = alpha * acc + beta * C[m, n], acc = sum over k of A[m, k] * B[k, n]
    (f32)``."""
    return f"{program.main.name}: {formula_text(program.problem)}"


def formula_text(problem: Problem) -> str:
    """The same without the name."""
    value = format_expression(problem.epilogue)
    scales = {scaling.of: scaling.tensor.text for scaling in problem.scales}
    terms = " * ".join(
        f"({factor.text} * {scales[factor.name]})" if factor.name in scales else factor.text
        for factor in problem.factors
    )
    return (
        f"{problem.c.text} = {value}, " f"acc = sum over {problem.k} of {terms} ({_types(problem)})"
    )


def _types(problem: Problem) -> str:
    """One type, or what each tensor and the accumulators have."""
    types = {t.name: t.dtype for t in (*problem.factors, problem.c)}
    found = {**types, "accumulators": problem.accumulate}
    if len(set(found.values())) == 1:
        return problem.c.dtype
    return ", ".join(f"{name} {dtype}" for name, dtype in found.items())
