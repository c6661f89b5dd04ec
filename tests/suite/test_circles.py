"""No file imports itself by way of others.  ``lint-imports`` checks packages in the same way, and
needs its own installation."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def modules() -> dict[str, Path]:
    """The files of the package by the names of their modules."""
    found: dict[str, Path] = {}
    for path in (ROOT / "gemmgen").rglob("*.py"):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(node: ast.AST, known: dict[str, Path]) -> Iterator[str]:
    """The modules that a file imports, in functions too, but for what types alone need."""
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.If(test=ast.Name("TYPE_CHECKING")):
                pass
            case ast.ImportFrom(module=str(module), names=names):
                for name in names:
                    whole = f"{module}.{name.name}"
                    yield whole if whole in known else module
            case ast.Import(names=names):
                yield from (name.name for name in names)
            case _:
                yield from imported(child, known)


def graph() -> dict[str, set[str]]:
    known = modules()
    return {
        module: known.keys() & set(imported(ast.parse(path.read_text(encoding="utf-8")), known))
        for module, path in known.items()
    }


def circle(of: dict[str, set[str]]) -> list[str]:
    """The files of a circle, if there is one."""
    try:
        TopologicalSorter(of).prepare()
    except CycleError as found:
        return found.args[1]
    return []


@pytest.fixture(scope="module")
def files() -> dict[str, set[str]]:
    return graph()


@pytest.mark.proof
def test_no_files_import_each_other(files: dict[str, set[str]]) -> None:
    assert len(files) > 500 and circle(files) == []


@pytest.mark.proof
def test_a_planted_circle_is_found(files: dict[str, set[str]]) -> None:
    lowest = "gemmgen.base.record"
    highest = next(module for module, below in files.items() if lowest in below)
    assert {lowest, highest} <= {*circle({**files, lowest: {highest}})}
