"""Rung 0: the naive program of a problem, a thread per element of C.

Passes rewrite this program, and every rewrite is checked to compute the same.
"""

from __future__ import annotations

from collections.abc import Mapping

from gemmgen.base.errors import Refusal
from gemmgen.base.units import numeral
from gemmgen.ir.buffers import AxisSpread, Buffer, Role, Spread
from gemmgen.ir.dtypes import DTYPES, DType
from gemmgen.ir.expr import Binary, Call, Expr, Float, Var, walk
from gemmgen.ir.nodes import Contract, Copy, Fact, Init, Kernel, Loop, Map, Program, Work
from gemmgen.ir.problem import Problem, Scaling, Tensor, default_epilogue
from gemmgen.ir.target import has
from gemmgen.passes.intent import intent_of
from gemmgen.schedule.model import Access, Dtypes, Schedule
from gemmgen.schedule.roles import batches, roles

THREADS_X, THREADS_Y = 32, 8
TEMPORARY = "unfused"
"""Name of the matrix between the contraction and an epilogue that is not fused."""


def build(schedule: Schedule) -> Program:
    """The naive program.

    A given epilogue is computed unfused: the contraction writes a temporary matrix that a second
    kernel maps to C, until the pass ``fuse_epilogue`` removes both.
    """
    problem = _problem(schedule)
    if schedule.epilogue is not None and Var("acc") not in walk(problem.epilogue):
        raise Refusal(
            "the epilogue doesn't use acc, the accumulator that the kernel computes",
            at=schedule.epilogue.span,
            hint="write acc for the sum, such as relu(acc)",
        )
    _check_target(schedule, problem)
    _check_integers(schedule, problem)
    facts = tuple(Fact(a.name, a.divisor, a.equals) for a in schedule.assumes)
    name = schedule.kernel
    if schedule.epilogue is None:
        kernels = (contracting_kernel(problem, name, problem.c, problem.epilogue),)
    else:
        temporary = Tensor(TEMPORARY, problem.c.letters, problem.accumulate)
        kernels = (
            contracting_kernel(problem, name, temporary, Var("acc")),
            mapping_kernel(problem, f"{name}_epilogue", temporary),
        )
    return Program(problem, schedule.target, (), kernels, facts, intent_of(schedule))


def _check_target(schedule: Schedule, problem: Problem) -> None:
    """Refuses a type that the target has no instructions for."""
    for newer, traits in DTYPES.items():
        stored = [name for name, dtype in schedule.dtypes if dtype == newer]
        if stored and not has(schedule.target, traits.since):
            raise Refusal(
                f"{schedule.target} has no {newer} conversions",
                at=schedule.dtype_span,
                notes=(f"{', '.join(stored)} would need those that sm_{traits.since} brought",),
                hint=f"target sm_{traits.since} or later; or f16, which every target converts",
            )


INTEGER_FUNCTIONS = ("relu", "min", "max", "clamp", "abs")


def _check_integers(schedule: Schedule, problem: Problem) -> None:
    """Refuses what an epilogue of integers can't compute."""
    if schedule.epilogue is None or problem.numbers != "i32":
        return
    for expr in walk(problem.epilogue):
        match expr:
            case Call(function) if function not in INTEGER_FUNCTIONS:
                said = f"{function}() has no integers for results"
            case Binary("/"):
                said = "a division would have to round"
            case Float(value) if value != int(value) or abs(value) >= 2**31:
                said = f"{numeral(value)} is not an i32"
            case _:
                continue
        c = problem.c.name
        raise Refusal(
            f"{c} is i32 and the epilogue computes in i32, where {said}",
            at=schedule.epilogue.span,
            notes=(f"it has +, -, *, comparisons, where, {', '.join(INTEGER_FUNCTIONS)}",),
            hint=(
                f"dtype {c}=f32: the epilogue then computes in f32, from the same i32 "
                "accumulators"
            ),
        )


def _problem(schedule: Schedule) -> Problem:
    """The problem of a schedule's ``gemm`` and ``fuse_epilogue`` lines."""
    gemm, stored = schedule.gemm, dict(schedule.dtypes)
    m, n, k = roles(gemm)
    c, a, b = (_tensor(access, stored) for access in (gemm.c, gemm.a, gemm.b))
    epilogue = schedule.epilogue.expression if schedule.epilogue else default_epilogue(c)
    known = {c.name, a.name, b.name, "acc"}
    types: Dtypes = tuple(pair for pair in schedule.dtypes if pair[0] not in known)
    scales = tuple(Scaling(Tensor(x.tensor, x.indices), x.of) for x in gemm.scales)
    acc = stored.get("acc", "f32")
    return Problem(c, a, b, m, n, k, epilogue, acc, types, batches(gemm), scales=scales)


def default_work(problem: Problem, x: str) -> tuple[Work, Spread]:
    """32 threads along ``x`` by 8 along the other letter of C, one element each."""
    sizes = {x: THREADS_X, (problem.n if x == problem.m else problem.m): THREADS_Y}
    return spread_evenly(problem, x, sizes)


def spread_evenly(problem: Problem, x: str, sizes: dict[str, int]) -> tuple[Work, Spread]:
    """A thread per element of a tile of these ``sizes``."""
    letters = (problem.m, problem.n)
    axes = tuple(AxisSpread(letter, 1, 1, sizes[letter], 1) for letter in letters)
    work = Work(tuple((letter, sizes[letter]) for letter in letters), batch=problem.batch)
    return work, Spread(axes, x)


def contracting_kernel(problem: Problem, name: str, out: Tensor, value: Expr) -> Kernel:
    """``out = value`` of acc = a * b, with every operand read from global memory."""
    work, spread = default_work(problem, problem.c.contiguous)
    body = (
        Init("acc"),
        Loop(problem.k, (Contract("acc", problem.a.name, problem.b.name),)),
        Map(out.name, value),
    )
    buffers = (
        _global(problem, problem.a),
        _global(problem, problem.b),
        _global(problem, out),
        accumulator(problem, work, spread),
    )
    return Kernel(name, work, buffers, body)


def mapping_kernel(problem: Problem, name: str, source: Tensor) -> Kernel:
    """``C = epilogue(acc)`` with acc read back from ``source``."""
    work, spread = default_work(problem, problem.c.contiguous)
    body = (Copy("acc", source.name), Map(problem.c.name, problem.epilogue))
    accumulators = accumulator(problem, work, spread)
    buffers = (_global(problem, source), _global(problem, problem.c), accumulators)
    return Kernel(name, work, buffers, body)


def accumulator(problem: Problem, work: Work, spread: Spread) -> Buffer:
    """The block's tile of accumulators, in registers."""
    return Buffer("acc", Role.ACCUMULATOR, problem.accumulate, work.tile, spread=spread)


def _global(problem: Problem, tensor: Tensor) -> Buffer:
    """The block's own matrix of a tensor."""
    role = Role.TEMPORARY if tensor.name == TEMPORARY else Role.TENSOR
    shape = tuple((letter, None) for letter in problem.matrix(tensor.letters))
    return Buffer(tensor.name, role, tensor.dtype, shape)


def _tensor(access: Access, stored: Mapping[str, DType]) -> Tensor:
    return Tensor(access.tensor, access.indices, stored.get(access.tensor, "f32"))
