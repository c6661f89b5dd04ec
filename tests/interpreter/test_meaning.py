"""Right kernels compute their problem at every shape; each planted bug is found, with its index."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import TypeVar, cast

import pytest

from gemmgen.base.source import Source
from gemmgen.ir.control import Assign, If
from gemmgen.ir.expr import Call, Element, Expr, Float, Int, Select, Var
from gemmgen.ir.exprtext import format_expression
from gemmgen.ir.instruction import instruction
from gemmgen.ir.lowered import LoweredKernel, LoweredProgram
from gemmgen.ir.requirement import Equal, MultipleOf, Requirement
from gemmgen.ir.text import parse_ir, print_ir
from gemmgen.ir.thread_code import Node, RegisterArray
from gemmgen.language import parse_schedule
from gemmgen.pipeline import compile_schedule
from gemmgen.proof.equivalence import Difference, same_meaning

from .kernels import ACC, PROBLEM, X, Y, at, load_b, naive, of, tiled

SHAPES = [(1, 1, 1), (2, 3, 1), (8, 32, 5), (17, 31, 9), (16, 32, 8), (37, 70, 13), (5, 4, 0)]
Part = TypeVar("Part")


def check(kernel: LoweredKernel, shape: tuple[int, int, int]) -> Difference | None:
    return same_meaning(LoweredProgram((kernel,)), PROBLEM, shape)


def swapped(value: Part, old: object, new: object) -> Part:
    """``value`` with ``new`` wherever a part of it equals ``old``."""
    if value == old:
        return cast(Part, new)
    if isinstance(value, tuple):
        parts = tuple(swapped(part, old, new) for part in value)
        return cast(Part, tuple(part for part in parts if part is not None))
    if is_dataclass(value) and not isinstance(value, type):
        named = {f.name: swapped(getattr(value, f.name), old, new) for f in fields(value)}
        return replace(value, **named)
    return value


@pytest.mark.parametrize("shape", [*SHAPES, (0, 4, 4), (4, 0, 4)])
@pytest.mark.parametrize("kernel", [naive(), tiled()], ids=["naive", "tiled"])
def test_a_right_kernel_means_its_problem(kernel: LoweredKernel, shape: tuple[int, int, int]):
    assert check(kernel, shape) is None


STAGE, FOLLOWING = Var("stage"), of("-", 1, "stage")
NEXT_K = of("+", "tile_k", "BK")
K_INSIDE = of("<", of("+", NEXT_K, X), "K")
IN_C = of("&&", of("<", "m", "M"), of("<", "n", "N"))

NAIVE_BUGS: dict[str, tuple[object, object]] = {
    "a row shifted by one": (at("A", "m", "k"), at("A", of("+", "m", 1), "k")),
    "a leading dimension swapped": (Var("lda"), Var("ldb")),
    "the last k lost": (Var("K"), of("-", "K", 1)),
    "a k too many": (Var("K"), of("+", "K", 1)),
    "the guard of n dropped": (of(">=", "n", "N"), of("<", "n", 0)),
    "the guard of n one too wide": (of(">=", "n", "N"), of(">", "n", "N")),
    "alpha dropped": (of("*", "alpha", ACC), ACC),
    "beta = 0 reads C": (of("!=", "beta", Float(0.0)), of("==", 0, 0)),
    "threads exchanged": (X, Y),
    "the sum begins at one": (Float(0.0), Float(1.0)),
    "another element of C": (at("C", "m", "n"), at("C", "n", "m")),
    "all blocks do the first tile": (Var("blockIdx.x"), Int(0)),
}


@pytest.mark.parametrize("bug", NAIVE_BUGS)
def test_a_planted_bug_in_the_naive_kernel_is_found(bug: str):
    wrong = swapped(naive(), *NAIVE_BUGS[bug])
    assert wrong != naive()
    difference = check(wrong, (17, 35, 9))
    assert difference is not None, bug
    assert difference.text()


TILED_BUGS: dict[str, tuple[object, object]] = {
    "rows shorter than the tile": ((2, 4, 17), (2, 4, 15)),
    "rows shorter than the wide tile": ((2, 4, 32), (2, 4, 28)),
    "one stage too few": ((2, 4, 17), (1, 4, 17)),
    "the next tile stored to the present stage": (load_b(FOLLOWING, NEXT_K), load_b(STAGE, NEXT_K)),
    "the stage never changes": (Assign("stage", FOLLOWING), Assign("stage", STAGE)),
    "a fragment one row off": (
        Element("A_shared", (STAGE, Var("k"), Y)),
        Element("A_shared", (STAGE, Var("k"), of("+", Y, 1))),
    ),
    "the guard of k dropped": (K_INSIDE, of("==", 0, 0)),
    "accumulators that begin as they were": (
        RegisterArray("acc", "f32", (Int(2),), (2,), zero=True),
        RegisterArray("acc", "f32", (Int(2),), (2,)),
    ),
    "the store's guard dropped": (IN_C, of("<", "m", "M")),
    "the store's guard one too wide": (IN_C, of("&&", of("<", "m", "M"), of("<=", "n", "N"))),
    "a misaligned wide load": (
        at("B", of("+", 0, Y), of("+", "tile_n", of("*", X, 4))),
        at("B", of("+", 0, Y), of("+", of("+", "tile_n", of("*", X, 4)), 1)),
    ),
    "the last step of k lost": (Var("K"), of("-", "K", 4)),
}


@pytest.mark.parametrize("bug", TILED_BUGS)
def test_a_planted_bug_in_the_tiled_kernel_is_found(bug: str):
    wrong = swapped(tiled(), *TILED_BUGS[bug])
    assert wrong != tiled()
    difference = check(wrong, (37, 70, 13))
    assert difference is not None, bug
    assert difference.text()


def test_a_difference_names_its_place():
    zero = Element("A", (Int(0),))
    wrong = Select(of("&&", of("==", "m", 3), of("==", "n", 5)), zero, at("A", "m", "k"))
    difference = check(swapped(naive(), at("A", "m", "k"), wrong), (8, 8, 3))
    assert difference is not None
    assert difference.index == (3, 5)
    assert difference.text().startswith("C[3, 5] is ")
    assert "1 wrong in all" in difference.text()


def test_unwritten_elements_are_named():
    guarded = swapped(naive(), of(">=", "n", "N"), of(">=", "n", 3))
    difference = check(guarded, (2, 4, 3))
    assert difference == Difference("is never written", (0, 3))


def test_a_barrier_that_some_threads_miss_is_found():
    kernel = tiled()
    body: tuple[Node, ...] = (If(of("<", X, 4), (instruction("sync_block"),)), *kernel.body)
    difference = check(replace(kernel, body=body), (16, 32, 4))
    assert difference is not None and "barrier" in difference.reason


def requiring(kernel: LoweredKernel, *rules: Requirement) -> LoweredProgram:
    """A program of ``kernel``, which requires more."""
    required = (*kernel.interface.requirements, *rules)
    return LoweredProgram(
        (replace(kernel, interface=replace(kernel.interface, requirements=required)),)
    )


def test_a_shape_that_breaks_a_requirement_is_refused():
    program = requiring(tiled(), MultipleOf("N", 4))
    with pytest.raises(ValueError, match=r"N % 4 == 0"):
        same_meaning(program, PROBLEM, (4, 5, 4))


def test_requirements_choose_leading_dimensions():
    rules = MultipleOf("ldc", 8), Equal("ldb", "ldc")
    assert same_meaning(requiring(naive(), *rules), PROBLEM, (5, 9, 7)) is None
    wrong = swapped(naive(), Var("ldb"), of("+", "ldc", 8))
    assert same_meaning(requiring(wrong, *rules), PROBLEM, (5, 9, 7)) is not None
    right = swapped(naive(), Var("ldb"), Var("ldc"))
    assert same_meaning(requiring(right, *rules), PROBLEM, (5, 9, 7)) is None
    assert check(right, (5, 9, 7)) is not None


def _biased(value: Expr) -> LoweredKernel:
    """The naive kernel with another value stored, of ``acc`` and n."""
    kernel = naive()
    body = (*kernel.body[:-2], Assign(at("C", "m", "n"), value))
    return replace(kernel, body=body)


def test_results_that_f32_cannot_hold_are_compared_closely():
    tenth = of("*", Float(0.1), ACC)
    problem = replace(PROBLEM, epilogue=of("+", tenth, Float(0.3)))
    fused = Var("acc")
    kernel = _biased(Call("fmaf", (Float(0.1), fused, Float(0.3))))
    assert same_meaning(LoweredProgram((kernel,)), problem, (9, 9, 9)) is None
    wrong = _biased(Call("fmaf", (Float(0.1), fused, Float(0.301))))
    difference = same_meaning(LoweredProgram((wrong,)), problem, (9, 9, 9))
    assert difference is not None and format_expression(problem.epilogue) == "0.1 * acc + 0.3"


def test_a_tie_of_what_is_rounded_may_go_either_way() -> None:
    """A square root may be half an integer in f32, and a little less in f64; what is wrong by more
    is found."""
    text = """\
gemm result[batch, row, col] = left[row, d] * right[batch, d, col]
dtype left=i8 right=i8 result=f32
fuse_epilogue round(sqrt(abs(alpha * acc * result[batch, row, col])))
"""
    found = compile_schedule(parse_schedule(Source(text)))
    problem, shape = found.program.problem, (64, 64, 96, 2)
    assert same_meaning(found.lowered, problem, shape) is None
    more = replace(problem, epilogue=of("+", problem.epilogue, Float(1.0)))
    assert same_meaning(found.lowered, more, shape) is not None


def test_a_tie_of_a_fused_operation_may_go_either_way() -> None:
    """``x * 0.001 - 0.5`` rounds once in a kernel, and twice, or in f64, where it is compared."""
    text = """\
gemm C[b, h, m, n] = A[b, h, m, k] * B[b, k, n]
assume N % 128 == 0
fuse_epilogue round(alpha * acc * bias[n] * 0.001 - 0.5)
"""
    found = compile_schedule(parse_schedule(Source(text)))
    problem, shape = found.program.problem, (32, 256, 3, 3, 2)
    assert same_meaning(found.lowered, problem, shape) is None
    more = replace(problem, epilogue=of("+", problem.epilogue, Float(1.0)))
    assert same_meaning(found.lowered, more, shape) is not None


def test_a_comparison_of_integers_is_exact() -> None:
    text = "gemm C[m, n] = A[m, k] * B[k, n]\nfuse_epilogue where(acc > 4, acc, -acc)\n"
    found = compile_schedule(parse_schedule(Source(text)))
    assert same_meaning(found.lowered, found.program.problem, (33, 35, 7)) is None
    text = print_ir(found.lowered)
    other = parse_ir(text.replace("where(acc > 4.0", "where(acc >= 4.0"), LoweredProgram)
    assert print_ir(other) != text
    assert same_meaning(other, found.program.problem, (33, 35, 7)) is not None
