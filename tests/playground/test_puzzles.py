"""Each puzzle has a solution that passes, and a start that fails."""

from __future__ import annotations

import pytest
from gemmgen_playground import puzzles
from gemmgen_playground.answers import compiled, graded, tasks

from gemmgen.base.errors import GemmgenError
from tests.playground.solutions import SOLUTIONS, solved

STARTS = {puzzle.name: puzzle.start for puzzle in puzzles.all_of_them()}


def test_there_are_twelve_and_each_has_a_known_solution() -> None:
    assert len(STARTS) == 12
    assert STARTS.keys() == SOLUTIONS.keys()


@pytest.mark.by_default("02_reuse")
@pytest.mark.parametrize("name", STARTS)
def test_the_start_fails_and_compiles(name: str) -> None:
    assert compiled(STARTS[name])["report"] == ""
    result = graded(name, STARTS[name])
    assert not result["passed"]
    first, *goals, proof = result["goals"]
    assert first["passed"] and proof["passed"]
    assert not all(goal["passed"] for goal in goals)


@pytest.mark.by_default("04_no_bank_conflicts")
@pytest.mark.parametrize("name", STARTS)
def test_the_known_solution_passes(name: str) -> None:
    text = solved(name, STARTS[name])
    assert compiled(text)["report"] == ""
    result = graded(name, text)
    assert result["passed"], result


def test_another_problem_is_no_solution() -> None:
    text = solved("02_reuse", STARTS["02_reuse"]).replace("A[m, k]", "A[k, m]")
    result = graded("02_reuse", text)
    assert not result["passed"]
    assert [goal["passed"] for goal in result["goals"]] == [False]


def test_a_text_with_a_mistake_is_no_solution() -> None:
    with pytest.raises(GemmgenError, match="error:"):
        graded("02_reuse", "gemm\n")


def test_the_page_gets_no_solution() -> None:
    for puzzle in tasks()["puzzles"]:
        assert puzzle.keys() == {"name", "title", "text", "start", "shape", "goals"}
