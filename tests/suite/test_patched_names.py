"""A test that replaces a name of gemmgen replaces one that is there: else the test, of the proof
perhaps, fails long after the name has moved."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]


@pytest.mark.proof
def test_replaced_names_exist() -> None:
    missing = [text for path in sorted(TESTS.rglob("*.py")) for text in _missing(path)]
    assert not missing, "\n".join(missing)


def _missing(path: Path) -> Iterator[str]:
    """Replaced names of gemmgen's modules that these lack."""
    text = path.read_text(encoding="utf-8")
    if ".setattr(" not in text:
        return
    tree = ast.parse(text)
    modules = dict(_imported(tree))
    for line, module, name in _replaced(tree):
        if module in modules and not hasattr(import_module(modules[module]), name):
            yield f"{path.relative_to(TESTS)}:{line}: {modules[module]} has no {name}"


def _imported(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Names in a test, and the modules of gemmgen that they are."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("gemmgen"):
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                if (TESTS.parent / f"{name.replace('.', '/')}.py").exists():
                    yield alias.asname or alias.name, name


def _replaced(tree: ast.Module) -> Iterator[tuple[int, str, str]]:
    """The calls ``patch.setattr(module, "name", ...)``: line, module, name."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(
                func=ast.Attribute(attr="setattr"),
                args=[ast.Name(id=module), ast.Constant(value=str(name)), *_],
            ):
                yield node.lineno, module, name
