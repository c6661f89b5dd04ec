"""Epilogues: what they mean, what they look like, and that the two agree."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gemmgen.ir.expr import Binary, Call, Element, Expr, Float, Select, Unary, Var
from gemmgen.ir.exprtext import format_expression
from gemmgen.schedule.formatting import format_schedule

from .helpers import epilogue, schedule

ACC = Var("acc")
MEANINGS = {
    "acc": ACC,
    "2": Float(2.0),
    ".5e-3": Float(0.0005),
    "-1": Unary("-", Float(1.0)),
    "--acc": Unary("-", Unary("-", ACC)),
    "acc - 1 - 2": Binary("-", Binary("-", ACC, Float(1.0)), Float(2.0)),
    "acc - (1 - 2)": Binary("-", ACC, Binary("-", Float(1.0), Float(2.0))),
    "acc + 1 * 2": Binary("+", ACC, Binary("*", Float(1.0), Float(2.0))),
    "(acc + 1) * 2": Binary("*", Binary("+", ACC, Float(1.0)), Float(2.0)),
    "-acc * 2": Binary("*", Unary("-", ACC), Float(2.0)),
    "bias[n]": Element("bias", (Var("n"),)),
    "residual[n, m]": Element("residual", (Var("n"), Var("m"))),
    "C[m, n] * beta": Binary("*", Element("C", (Var("m"), Var("n"))), Var("beta")),
    "relu(acc)": Call("relu", (ACC,)),
    "clamp(acc, -6, 6)": Call("clamp", (ACC, Unary("-", Float(6.0)), Float(6.0))),
    "tile + pad": Binary("+", Var("tile"), Var("pad")),
    "where(m >= n, acc, 0)": Select(Binary(">=", Var("m"), Var("n")), ACC, Float(0.0)),
    "where(!(m < n), acc, 0)": Select(Unary("!", Binary("<", Var("m"), Var("n"))), ACC, Float(0.0)),
    "where(m < n && acc < 1 || acc != acc, 1, 0)": Select(
        Binary(
            "||",
            Binary("&&", Binary("<", Var("m"), Var("n")), Binary("<", ACC, Float(1.0))),
            Binary("!=", ACC, ACC),
        ),
        Float(1.0),
        Float(0.0),
    ),
}


@pytest.mark.parametrize("text", MEANINGS)
def test_meaning_and_text(text: str) -> None:
    assert epilogue(text) == MEANINGS[text]
    assert epilogue(format_expression(MEANINGS[text])) == MEANINGS[text]


@pytest.mark.parametrize("text", [t for t in MEANINGS if t not in {".5e-3", "2"}])
def test_no_bracket_is_printed_without_need(text: str) -> None:
    assert format_expression(MEANINGS[text]) == text


finite = st.floats(min_value=2.0**-100, max_value=2.0**100, width=32)
numbers = st.one_of(st.integers(0, 10**6).map(lambda i: Float(float(i))), finite.map(Float))
leaves = st.one_of(
    numbers,
    st.sampled_from([ACC, Var("alpha"), Var("slope"), Var("m"), Element("bias", (Var("n"),))]),
)
comparisons = st.sampled_from(["<", "<=", ">", ">=", "==", "!="])


def _grow(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    comparison = st.builds(Binary, comparisons, inner, inner)
    joined = st.builds(Binary, st.sampled_from(["&&", "||"]), comparison, comparison)
    conditions = comparison | joined | st.builds(Unary, st.just("!"), comparison | joined)
    return st.one_of(
        st.builds(Binary, st.sampled_from(["+", "-", "*"]), inner, inner),
        st.builds(Binary, st.just("/"), inner, inner.filter(lambda x: x != Float(0.0))),
        st.builds(Unary, st.just("-"), inner),
        st.builds(Select, conditions, inner, inner),
        st.builds(lambda x: Call("gelu", (x,)), inner),
        st.builds(lambda x, y: Call("max", (x, y)), inner, inner),
    )


@given(st.recursive(leaves, _grow, max_leaves=12))
def test_every_expression_reads_back(expr: Expr) -> None:
    text = format_expression(expr)
    assert epilogue(text) == expr
    assert epilogue(text.replace("&&", "and").replace("||", "or")) == expr
    value = schedule(f"fuse_epilogue {text}")
    assert schedule(format_schedule(value)) == value
