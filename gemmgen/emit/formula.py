"""One sentence on what a kernel computes: the first line of its text."""

from __future__ import annotations

from gemmgen.ir.exprtext import format_expression
from gemmgen.ir.nodes import Program
from gemmgen.ir.problem import Problem, Tensor


def what_it_computes(program: Program) -> str:
    """``gemm: C[m, n] = alpha * acc + beta * C[m, n], acc = sum over k of A[m, k] * B[k, n]
    (f32)``."""
    problem = program.problem
    value = format_expression(problem.epilogue)
    terms = f"{_access(problem.a)} * {_access(problem.b)}"
    return (
        f"{program.main.name}: {_access(problem.c)} = {value}, "
        f"acc = sum over {problem.k} of {terms} ({_types(problem)})"
    )


def _types(problem: Problem) -> str:
    """One type, or what each tensor and the sums have."""
    types = {t.name: t.dtype for t in (problem.a, problem.b, problem.c)}
    found = {**types, "sums": problem.accumulate}
    if len(set(found.values())) == 1:
        return problem.c.dtype
    return ", ".join(f"{name} {dtype}" for name, dtype in found.items())


def _access(tensor: Tensor) -> str:
    return f"{tensor.name}[{', '.join(tensor.letters)}]"
