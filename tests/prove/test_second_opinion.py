"""``gemmgen prove --both``: what cvc5 says of the queries that z3 decides."""

from __future__ import annotations

import importlib
import json
from itertools import count
from pathlib import Path

import pytest

from gemmgen.base.errors import UsageError
from gemmgen.prove import proof_report, second_opinion, second_solver, solver
from gemmgen.prove.second_opinion import QueryLog, SecondOpinion, SolversDisagree
from tests.cli.running import EXAMPLES, gemmgen
from tests.prove import needs_z3  # noqa: F401  # skips the file without the solver

NAIVE = EXAMPLES / "naive.sched"


def answering(monkeypatch: pytest.MonkeyPatch, *answers: str) -> list[str]:
    """A second solver that gives these answers, the last one again and again; its queries."""
    asked: list[str] = []
    number = count()

    def answer(query: str, seconds: float) -> str:
        assert seconds == second_opinion.SECONDS
        asked.append(query)
        return answers[min(next(number), len(answers) - 1)]

    monkeypatch.setattr(second_solver, "satisfiable", answer)
    monkeypatch.setattr(second_solver, "version", lambda: "cvc5 0.0")
    return asked


def test_a_disagreement_is_an_error_that_names_the_fact(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked = answering(monkeypatch, "unsat", "sat")
    path = tmp_path / "naive.json"
    result = gemmgen("prove", NAIVE, "--both", "-o", path)
    assert result.exit_code == 1 and len(asked) == 2
    assert "z3 and cvc5 disagree on a query of the " in result.stderr
    assert "z3 says unsat, cvc5 says sat" in result.stderr
    assert asked[1] in result.stdout and "proved" not in result.stdout
    assert not path.exists()


def test_a_disagreement_as_json(monkeypatch: pytest.MonkeyPatch) -> None:
    def disagree(*_: object) -> object:
        raise SolversDisagree("the fact races", "(check-sat)")

    answering(monkeypatch, "unsat")
    monkeypatch.setattr(proof_report, "examine", disagree)
    result = gemmgen("prove", NAIVE, "--both", "--json")
    (found,) = json.loads(result.stdout)
    assert result.exit_code == 1 and found == {
        "file": str(NAIVE),
        "status": "disagreement",
        "about": "the fact races",
        "query": "(check-sat)",
    }


def test_each_query_has_the_fact_that_asked_it(monkeypatch: pytest.MonkeyPatch) -> None:
    log = QueryLog()
    log.add("(check-sat)", "the fact races")
    log.add("(check-sat)", "the fact coverage")
    answering(monkeypatch, "sat")
    with pytest.raises(SolversDisagree, match="a query of the fact races"):
        second_opinion.reviewed(log)


def test_what_cvc5_does_not_know_is_counted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked = answering(monkeypatch, "unknown", "unknown", "unsat")
    path = tmp_path / "naive.json"
    result = gemmgen("prove", NAIVE, "--both", "-o", path)
    assert result.exit_code == 0
    most = len(asked)
    assert f"cvc5 confirms {most - 2} of {most} queries; 2 unknown" in result.stdout
    found = json.loads(path.read_text())["second_opinion"]
    assert found.pop("seconds") >= 0
    assert found == {"solver": "cvc5 0.0", "queries": most, "confirmed": most - 2, "unknown": 2}
    assert gemmgen("check", NAIVE, "--proof", path).exit_code == 0


def test_the_count_in_words() -> None:
    assert SecondOpinion("cvc5 1.2", 1, 0, 0.1).text() == "cvc5 confirms 1 of 1 query"
    found = SecondOpinion("cvc5 1.2", 1812, 3, 0.1).text()
    assert found == "cvc5 confirms 1,812 of 1,815 queries; 3 unknown"


def test_without_cvc5_the_command_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    there = importlib.import_module

    def missing(name: str) -> object:
        if name == "cvc5":
            raise ImportError(name)
        return there(name)

    second_solver.module.cache_clear()
    monkeypatch.setattr(importlib, "import_module", missing)
    try:
        with pytest.raises(UsageError):
            second_solver.version()
        result = gemmgen("prove", NAIVE, "--both")
    finally:
        monkeypatch.undo()
        second_solver.module.cache_clear()
    assert result.exit_code == 2 and not result.stdout
    assert "--both needs the solver cvc5" in result.stderr
    assert "pip install '.[both]'" in result.stderr


def test_names_are_quoted_for_cvc5() -> None:
    """z3 prints names bare that SMT-LIB reserves or does not take."""
    z3 = solver.module()
    x, y, z = solver.integer("q'"), solver.integer("tiles along M"), solver.integer("let")
    query = second_solver.quoted(solver.smtlib([x > y, y > z, z3.Not(x > z)]))
    assert all(f"(declare-fun |{name}| () Int)" in query for name in ("q'", "tiles along M", "let"))
    assert "(> |q'| |tiles along M|)" in query and "(let " not in query


@pytest.mark.proof
@pytest.mark.parametrize("name", ["naive", "tiled", "best/bias_relu", "steps/mma_tma"])
def test_cvc5_confirms_each_query(name: str) -> None:
    pytest.importorskip("cvc5", reason="cvc5 is not installed")
    (found,) = json.loads(gemmgen("prove", EXAMPLES / f"{name}.sched", "--both", "--json").stdout)
    second = found["second_opinion"]
    assert second["solver"] == second_solver.version()
    assert second["unknown"] == 0 and second["confirmed"] == second["queries"] > 20


@pytest.mark.parametrize(
    ("assertion", "answer"),
    [
        ("(> x x)", "unsat"),
        ("(> x 3)", "sat"),
        ("(> x y)", "unknown"),
        ("(> x", "unknown"),
        ("(> 'x 3)", "unknown"),
    ],
)
def test_cvc5_answers(assertion: str, answer: str) -> None:
    """What it cannot read is unknown to it, never confirmed."""
    pytest.importorskip("cvc5", reason="cvc5 is not installed")
    query = f"(declare-fun x () Int)\n(assert {assertion})\n(check-sat)\n"
    assert second_solver.satisfiable(query, 1.0) == answer


def test_cvc5_has_a_time_limit() -> None:
    pytest.importorskip("cvc5", reason="cvc5 is not installed")
    cubes = "(assert (= (+ (* x x x) (* y y y) (* z z z)) 33))"
    names = "".join(f"(declare-fun {name} () Int)\n" for name in "xyz")
    assert second_solver.satisfiable(f"{names}{cubes}(check-sat)", 0.2) == "unknown"
