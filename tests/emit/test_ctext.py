"""Expressions as C: as few parentheses as C's precedence allows, and never one too few."""

from __future__ import annotations

import itertools
import shutil
import struct
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gemmgen.emit.ctext import PRECEDENCE, c_float, c_text
from gemmgen.emit.line_breaks import plain
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

VALUES = {"a": 23, "b": 7, "c": 3, "d": 2}
A, B, C, D = (Var(name) for name in VALUES)
OPERATORS = tuple(PRECEDENCE)


def nestings() -> list[Expr]:
    """Every operator within every other, on either side; and within what is not an operator of
    two."""
    found: list[Expr] = []
    for outer, inner in itertools.product(OPERATORS, repeat=2):
        found.append(Binary(outer, Binary(inner, A, B), C))
        found.append(Binary(outer, A, Binary(inner, B, C)))
    for op in OPERATORS:
        pair = Binary(op, A, B)
        found += [Unary("-", pair), Unary("!", pair), Wide(pair)]
        found += [Binary(op, Unary("-", A), Unary("-", B)), Binary(op, Wide(A), Wide(B))]
        found += [Binary(op, Int(-23), Int(-7)), Unary("-", Unary("-", pair))]
        chosen = Select(Binary("<", A, B), C, D)
        found += [Binary(op, chosen, C), Binary(op, A, chosen), Select(pair, C, D)]
        found += [Select(B, pair, D), Select(B, D, pair)]
    either = Select(A, Select(B, C, D), Select(Binary("<", A, B), D, C))
    return [*found, either, Select(Select(A, B, C), C, D), Unary("-", Int(-3)), Unary("!", A)]


def value(expr: Expr) -> int:
    match expr:
        case Int(number):
            return number
        case Var(name):
            return VALUES[name]
        case Unary("-", operand):
            return -value(operand)
        case Unary("!", operand):
            return int(not value(operand))
        case Wide(operand):
            return value(operand)
        case Select(condition, yes, no):
            return value(yes) if value(condition) else value(no)
        case Binary(op, left, right):
            return _apply(op, value(left), value(right))
    raise AssertionError(expr)


def _apply(op: str, left: int, right: int) -> int:
    match op:
        case "/" | "%":
            quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
            return quotient if op == "/" else left - quotient * right
        case "&&":
            return int(bool(left) and bool(right))
        case "||":
            return int(bool(left) or bool(right))
        case "<<" if left < 0 or not 0 <= right < 32 or left << right >= 2**31:
            raise ValueError("C does not define it")
    return int(eval(f"left {op} right"))


def is_defined(expr: Expr) -> bool:
    try:
        value(expr)
    except (ZeroDivisionError, ValueError):
        return False
    return True


@pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")
def test_every_pair_of_operators_means_in_c_what_it_means_here(tmp_path: Path) -> None:
    expressions = [expr for expr in nestings() if is_defined(expr)]
    assert len(expressions) > 400
    checks = "\n".join(
        f'    if (({plain(c_text(expr))}) != {value(expr)}) std::printf("%d\\n", {i});'
        for i, expr in enumerate(expressions)
    )
    variables = ", ".join(f"{name} = {number}" for name, number in VALUES.items())
    program = f"#include <cstdio>\nint main() {{\n    volatile int {variables};\n{checks}\n}}\n"
    (tmp_path / "pairs.cpp").write_text(program)
    built = subprocess.run(
        ["g++", "-std=c++17", "-O0", "-Wparentheses", "-Werror", "pairs.cpp", "-o", "pairs"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stderr
    wrong = subprocess.run([tmp_path / "pairs"], capture_output=True, text=True).stdout.split()
    assert [plain(c_text(expressions[int(i)])) for i in wrong] == []


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (Binary("+", Binary("*", A, B), C), "a * b + c"),
        (Binary("*", Binary("+", A, B), C), "(a + b) * c"),
        (Binary("-", A, Binary("-", B, C)), "a - (b - c)"),
        (Binary("-", Binary("-", A, B), C), "a - b - c"),
        (Binary("*", Binary("/", A, B), C), "(a / b) * c"),
        (Binary("||", Binary("&&", A, B), C), "(a && b) || c"),
        (Binary("&&", Binary("<", A, B), Binary("<", C, D)), "a < b && c < d"),
        (Unary("-", Unary("-", A)), "-(-a)"),
        (Unary("-", Float(-1.5)), "-(-1.5f)"),
        (Binary("*", Wide(A), B), "(long long)a * b"),
        (Select(Binary("<", A, B), C, Select(D, A, B)), "a < b ? c : d ? a : b"),
        (Call("fmaf", (Binary("+", A, B), C, D)), "fmaf(a + b, c, d)"),
        (Element("A", (Binary("+", A, B), C)), "A[a + b][c]"),
        (Call("float", (A,)), "static_cast<float>(a)"),
    ],
)
def test_prints_what_a_person_would_write(expr: Expr, text: str) -> None:
    assert plain(c_text(expr)) == text


def single(number: float) -> float:
    return struct.unpack("f", struct.pack("f", number))[0]


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_a_float_reads_back_as_itself(number: float) -> None:
    text = c_float(number)
    assert text.endswith("f") and ("." in text or "e" in text)
    assert struct.pack("f", float(text[:-1])) == struct.pack("f", number)


@given(st.floats(min_value=-3e38, max_value=3e38))
def test_a_number_is_rounded_once_to_single_precision(number: float) -> None:
    assert single(float(c_float(number)[:-1])) == single(number)


@pytest.mark.parametrize(
    ("number", "text"),
    [(0.0, "0.0f"), (1.0, "1.0f"), (0.7, "0.7f"), (1e20, "1e20f"), (1e-8, "1e-08f"), (0.1, "0.1f")],
)
def test_a_float_is_short(number: float, text: str) -> None:
    assert c_float(number) == text
