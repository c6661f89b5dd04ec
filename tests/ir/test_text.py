"""The IR as text: what is printed is read back, and what is wrong names its line and column."""

from __future__ import annotations

import contextlib
from random import Random
from textwrap import indent
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gemmgen.ir.text
from gemmgen.base.record import record
from gemmgen.ir.expanded import ExpandedKernel
from gemmgen.ir.expr import (
    Binary,
    Call,
    Element,
    Expr,
    Float,
    Int,
    Select,
    Unary,
    Var,
    Wide,
)
from gemmgen.ir.exprreader import read_expression
from gemmgen.ir.exprtext import exact_text
from gemmgen.ir.lowered import LoweredKernel
from gemmgen.ir.nodes import Copy, Kernel, Program
from gemmgen.ir.text import parse_ir, print_ir
from gemmgen.ir.textcursor import Cursor, IRTextError
from gemmgen.passes.build import build
from gemmgen.schedule.model import Epilogue, Schedule

from .records import CLASSES, Drawn
from .samples import FAST, NAIVE, PROGRAMS, UNFUSED

WHOLE = [kind for kind in CLASSES if not hasattr(kind, "__parameters__")]
"""Classes whose bodies, if any, are of statements that they name."""
LEVELS = (Kernel, ExpandedKernel, LoweredKernel)


def test_the_naive_program_prints_as_quoted():
    assert print_ir(build(Schedule())) == NAIVE
    assert indent(NAIVE, "    ") in str(gemmgen.ir.text.__doc__)


def test_an_unfused_program_has_two_kernels():
    epilogue = Call("relu", (Binary("+", Var("acc"), Element("bias", (Var("n"),))),))
    assert print_ir(build(Schedule(epilogue=Epilogue(epilogue)))) == UNFUSED


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_parsed_prints_the_same(name: str):
    assert print_ir(parse_ir(PROGRAMS[name], Program)) == PROGRAMS[name]


def test_every_line_of_a_program_matters():
    program = parse_ir(FAST, Program)
    lines = FAST.splitlines(keepends=True)
    for at in range(1, len(lines)):
        shorter = "".join(lines[:at] + lines[at + 1 :])
        with contextlib.suppress(IRTextError):
            assert parse_ir(shorter, Program) != program, lines[at]


MALFORMED = [
    ("pad=4", "pad=4.5", "line 8, column 45: expected an option of Buffer"),
    ("pad=4", "pad=four", "line 8, column 44: expected an integer, found `four stages=2"),
    ("pad=4", "pad=4 pad=4", "line 8, column 46: pad is given twice"),
    (
        "init acc",
        "init",
        "line 13, column 9: expected a name or a string before the",
    ),
    (
        "init acc",
        "start acc",
        "line 13, column 5: expected what belongs below Kernel",
    ),
    ("order=serpentine", "order=back", "expected one of rows, serpentine, zigzag, found `back"),
    ("(acc + bias[n]) width", "(acc + ) width", "line 21, column 24: expected an expression"),
    ("A_frag * B_frag", "A_frag", "line 20, column 32: expected `*`, found `order=serpentine"),
    ("      loop k", "       loop k", "line 17, column 8: expected what belongs below Copy"),
    ("  map C", " map C", "line 21, column 4: expected 4 spaces of indentation"),
    ("work [m=128", "# [m=128", "line 4, column 5: expected what belongs below Kernel"),
    ("spread [n=1x2x16x4] x=n", "spread [n=1x2x16x4]", "line 11, column 59: expected x=, found `#"),
    (
        "N divisor",
        "N of 4 divisor",
        "line 22, column 10: expected an option of Fact (div",
    ),
    ("program sm_90a", "kernel sm_90a", "line 1, column 1: expected one of program, found `kernel"),
    ("kernel fast", "kernel fast, fast", "line 3, column 14: expected an option of Kernel"),
    (
        "  fact N divisor=4",
        "fact N divisor=4",
        "line 22, column 1: expected nothing after the P",
    ),
    ("C = relu", '"C = relu', "line 21, column 9: expected a string"),
]


@pytest.mark.parametrize(("old", "new", "message"), MALFORMED)
def test_malformed_text_names_its_place(old: str, new: str, message: str):
    assert old in FAST
    with pytest.raises(IRTextError) as raised:
        parse_ir(FAST.replace(old, new, 1), Program)
    assert message in str(raised.value)


def test_what_is_missing_below_a_line_is_named():
    without = "\n".join(line for line in NAIVE.splitlines() if " work" not in line)
    with pytest.raises(IRTextError, match="line 3, column 1: expected one line for work below K"):
        parse_ir(without, Program)
    with pytest.raises(IRTextError, match="line 1, column 1: expected a Program, found nothing"):
        parse_ir("\n  \n", Program)


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (Binary("*", Binary("+", Var("a"), Var("b")), Int(-1)), "(a + b) * -1"),
        (Binary("-", Var("a"), Unary("-", Int(1))), "a - -(1)"),
        (Binary("<", Binary("^", Var("a"), Int(1)), Var("b")), "(a ^ 1) < b"),
        (Binary("<<", Int(1), Binary("*", Var("a"), Var("b"))), "1 << a * b"),
        (Binary("/", Wide(Var("m")), Float(2.0)), "wide(m) / 2.0"),
        (Select(Unary("!", Var("p")), Float(0.5, "f64"), Float(1e-30)), "where(!p, 0.5f64, 1e-30)"),
        (Element("C", (Call("min", (Var("m"), Int(3))), Var("n"))), "C[min(m, 3), n]"),
    ],
)
def test_expressions_are_written_as_one_would(expr: Expr, text: str):
    assert exact_text(expr) == text


@given(st.integers(0, 1 << 32))
def test_any_expression_round_trips(seed: int):
    expr = Drawn(Random(seed)).expression()
    for text in (exact_text(expr), exact_text(expr, closed=True)):
        cursor = Cursor(text, 1)
        assert repr(read_expression(cursor)) == repr(expr) and cursor.is_done, text


@given(st.sampled_from(WHOLE), st.integers(0, 1 << 32))
def test_any_node_round_trips(kind: type, seed: int):
    """Of any class, with any values."""
    reads_back(Drawn(Random(seed)).node(kind))


@given(st.sampled_from(LEVELS), st.integers(0, 1 << 32))
def test_any_body_round_trips(kind: type, seed: int):
    reads_back(Drawn(Random(seed)).node(kind, depth=4))


def reads_back(node: object) -> None:
    """Equal, and the same as text: -0.0 equals 0.0."""
    text = print_ir(node)
    read = parse_ir(text, type(node))
    assert read == node and print_ir(read) == text


@record
class Prefetch:
    """A node that the modules of the IR have never seen."""

    SYNTAX: ClassVar = "{copy} before {step}"

    copy: Copy
    step: Expr
    lines: int = 1
    wide: bool = False
    body: tuple[Copy, ...] = ()


def test_a_new_node_needs_nothing_but_its_class():
    made = Prefetch(
        Copy("A", "B", 4, origins=("tile m=8",)),
        Binary("+", Var("k"), Int(1)),
        wide=True,
        body=(Copy("C", "D"),),
    )
    text = """\
prefetch A = B width=4 before k + 1 wide   # tile m=8
  copy C = D
"""
    assert print_ir(made) == text
    assert parse_ir(text, Prefetch) == made
