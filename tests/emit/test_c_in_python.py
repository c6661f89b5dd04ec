"""C is written in templates and in ``.cuh`` files: Python holds the names of types and functions,
and an expression's operators."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

EMIT = Path(__file__).parents[2] / "gemmgen" / "emit"
READS = {"scopes.py", "library_python.py"}
"""Have C's words because they read an emitted text, or write Python that names CUDA's; they write
no statement of C."""
PATHS = [path for path in sorted(EMIT.rglob("*.py")) if path.name not in READS]

C = re.compile(
    r"\b(asm|alignas|const|constexpr|extern|reinterpret_cast|return|sizeof|static_assert|static_cast"
    r"|struct|template|typedef|volatile)\b|\b(if|for|while|switch)\s*\(|\b__\w+|\b(gg_\w+|dim3)\("
    r"|#\s*(pragma|if|endif|define|include)|\bcuda[A-Z]|<<<|;$|;\n|^[{}]$|\)\s*{"
)
"""What statements and declarations are made of."""

ALLOWED = {
    "ctext.py": {"static_cast<float>", "static_cast<double>", "reinterpret_cast<size_t>"},
    "launcher_types.py": {"__half", "__nv_bfloat16", "__nv_fp8_e4m3", "__nv_fp8_e5m2"},
}
"""Conversions, which an expression calls as functions; names of CUDA's types."""


def literals(source: str) -> Iterator[str]:
    """The strings of a module but its docstrings; of f-strings the parts that are written out."""
    tree = ast.parse(source)
    comments = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in comments
        ):
            yield node.value


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.name)
def test_no_string_of_python_holds_a_statement_of_c(path: Path) -> None:
    found = {text for text in literals(path.read_text(encoding="utf-8")) if C.search(text)}
    assert found == ALLOWED.get(path.name, set())


@pytest.mark.parametrize(
    "text",
    [
        "f'{target} = {value};'",
        "f'if ({condition}) return'",
        "'#pragma unroll'",
        "f'const {kind} {name}'",
        "'__syncthreads()'",
        "f'gg_add(&{target}, {value})'",
        "'cudaErrorInvalidValue'",
        "f'*reinterpret_cast<{vector} *>(&{target})'",
        "'asm volatile'",
    ],
)
def test_what_it_would_find(text: str) -> None:
    assert any(C.search(part) for part in literals(f"x = {text}"))
