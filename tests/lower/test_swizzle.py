"""The emitted column of a swizzled element is the layout's, whatever is taken out of the ``^``."""

from __future__ import annotations

import itertools

import pytest

from gemmgen.emit.ctext import c_text
from gemmgen.emit.line_breaks import plain
from gemmgen.interpreter.expressions import compile_expression
from gemmgen.interpreter.scope import Scope, known
from gemmgen.ir.buffers import Swizzle
from gemmgen.ir.expr import Expr, Int, Var
from gemmgen.ir.simplify import add, div, mod, mul
from gemmgen.lower.swizzle import Known, swizzled

SIZES = {"LM": 8, "PM": 4, "THREADS": 256, "BK": 16}
KNOWN = Known(
    SIZES,
    {"thread_m": 4, "A_k": 4, "reg_m": 1},
    {"e": 4},
    frozenset(("k", "reg_m")),
)
PLACE, K, E = Var("thread_m"), Var("k"), Var("e")
PIECES = add(
    PLACE,
    mul(div(Var("reg_m"), Var("PM")), mul(Var("PM"), Var("LM"))),
    mod(Var("reg_m"), Var("PM")),
)
JUMP = mul(Var("piece"), div(Var("THREADS"), div(Var("BK"), Int(4))))
FORMS: dict[str, tuple[Expr, Expr]] = {
    "a fragment along its row": (add(K, Int(1)), add(PLACE, mul(Var("reg_m"), Var("LM")))),
    "a fragment of pieces": (K, PIECES),
    "a fragment of neighbours": (K, add(PLACE, Var("reg_m"))),
    "a fragment down a column": (PIECES, add(K, Int(1))),
    "the first fragment": (PIECES, Int(0)),
    "the first row": (Int(0), add(PLACE, Var("reg_m"))),
    "elements scattered": (add(Var("A_k"), E), add(Var("A_m"), JUMP)),
    "elements in a row": (add(Var("A_m"), JUMP), add(Var("A_k"), E)),
}
VALUES = {
    "thread_m": (0, 4, 20, 60),
    "reg_m": (0, 1, 6, 7),
    "k": (0, 3, 6),
    "A_k": (0, 4, 12),
    "A_m": (0, 5, 63),
    "e": (0, 3),
    "piece": (0, 1),
}
PATTERNS = [
    Swizzle(by, every, chunk) for by in (2, 4, 8) for every in (1, 2, 4, 16) for chunk in (1, 4, 8)
]
ROWS = 256


def value(expr: Expr, names: dict[str, int]) -> int:
    scope = Scope()
    for name, number in (SIZES | names).items():
        scope.bind(name, known(number, "int"))
    found = compile_expression(expr, scope).known
    assert isinstance(found, int)
    return found


@pytest.mark.proof
@pytest.mark.parametrize("form", FORMS)
def test_columns_are_those_of_the_layout(form: str) -> None:
    row, column = FORMS[form]
    text = plain(c_text(add(row, column)))
    used = [name for name in VALUES if name in text]
    for pattern in PATTERNS:
        emitted = swizzled(pattern, row, ROWS, column, KNOWN)
        for numbers in itertools.product(*(VALUES[name] for name in used)):
            names = dict(zip(used, numbers, strict=True))
            wanted = pattern.column(value(row, names), value(column, names))
            assert value(emitted, names) == wanted, (pattern, names, c_text(emitted))


@pytest.mark.parametrize(
    ("pattern", "form", "text"),
    [
        (
            Swizzle(4, 4, 4),
            "a fragment down a column",
            "(((k + 1) / 4) ^ (thread_m / 4 % 4)) * 4 + (k + 1) % 4",
        ),
        (Swizzle(4, 4, 8), "elements scattered", "(A_m ^ ((A_k / 4 % 4) * 8)) + JUMP"),
        (
            Swizzle(2, 1, 4),
            "a fragment of neighbours",
            "((thread_m / 4 + reg_m / 4) ^ (k % 2)) * 4",
        ),
    ],
)
def test_the_text_takes_out_what_it_can(pattern: Swizzle, form: str, text: str) -> None:
    row, column = FORMS[form]
    emitted = plain(c_text(swizzled(pattern, row, ROWS, column, KNOWN)))
    assert emitted.replace(plain(c_text(JUMP)), "JUMP").startswith(text)
