"""How the package is cut: rooms and the imports between them, floors of lowering, long files.

A room is a package or a file in ``gemmgen/``.  ``lint-imports`` checks that no import goes up.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from .test_circles import graph

ROOT = Path(__file__).parents[2] / "gemmgen"
ROOMS, IMPORTS = 29, 176
"""Imports between two rooms, however many files they are between.  Before a new one, see whether
what is imported lies in the wrong room."""
FLOORS = 10
"""The longest chain of files in ``lower/``, each of which imports the next."""

LONG = 300
SUFFIXES = {".py", ".h", ".cuh", ".cpp", ".j2", ".lark"}
REASON = re.compile(r"^(//|#)? ?Over 300 lines: \w", re.M)
"""How a long file says, among its first lines, why it is one."""

files = cache(graph)


def room(module: str) -> str:
    """``gemmgen.lower.kernel``: ``lower``."""
    return [*module.split("."), ""][1]


def edges(of: dict[str, set[str]]) -> set[tuple[str, str]]:
    """The pairs of different rooms, the first one with an import of the second."""
    found = {(room(module), room(other)) for module, others in of.items() for other in others}
    outside = {"", "__main__"}
    return {(one, other) for one, other in found if one != other and not {one, other} & outside}


def floors(of: dict[str, set[str]], package: str) -> int:
    """Files in the longest chain of imports within a package."""

    @cache
    def height(module: str) -> int:
        below = (other for other in of[module] if other.startswith(package))
        return 1 + max(map(height, below), default=0)

    return max(height(module) for module in of if module.startswith(package))


def is_explained(text: str) -> bool:
    """Whether a file is short, or says why it is not."""
    lines = text.splitlines()
    return len(lines) <= LONG or REASON.search("\n".join(lines[:30])) is not None


@pytest.mark.proof
def test_rooms_are_few_and_so_are_the_imports_between_them() -> None:
    found = edges(files())
    assert len({one for edge in found for one in edge}) <= ROOMS
    assert len(found) <= IMPORTS


@pytest.mark.proof
def test_a_planted_import_between_rooms_is_counted() -> None:
    planted = {**files(), "gemmgen.numerics.planted": {"gemmgen.calling.launches"}}
    assert edges(planted) - edges(files()) == {("numerics", "calling")}


@pytest.mark.proof
def test_lowering_has_few_floors() -> None:
    assert floors(files(), "gemmgen.lower") <= FLOORS
    planted = {**files(), "gemmgen.lower.planted": {"gemmgen.lower"}}
    assert floors(planted, "gemmgen.lower") > floors(files(), "gemmgen.lower")


def test_a_long_file_says_why() -> None:
    paths = sorted(path for path in ROOT.rglob("*") if path.suffix in SUFFIXES)
    texts = {p.relative_to(ROOT): p.read_text(encoding="utf-8") for p in paths}
    assert [path for path, text in texts.items() if not is_explained(text)] == []


def test_a_long_file_without_a_reason_is_found() -> None:
    body = "x = 1\n" * LONG
    assert is_explained(body) and not is_explained(body + "x = 1\n")
    assert not is_explained('"""Numbers."""\n' + body + "# Over 300 lines: too late\n")
    assert is_explained('"""Numbers.\n\nOver 300 lines: a table.\n"""\n' + body)
    assert is_explained("// Over 300 lines: a table.\n" + body)
