"""Layer P of ``gemmgen verify``: facts for all sizes, within a time."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import pytest

import gemmgen as package
from gemmgen.base.errors import UsageError
from gemmgen.proof import layers, verdicts
from gemmgen.proof.outcome import Subject, passed
from gemmgen.proof.verdicts import complaint_of, keep
from gemmgen.prove import proof_report, solver, verify_layer
from gemmgen.prove.discharge import FactOutcome
from gemmgen.prove.prover import Proof
from gemmgen.prove.verify_layer import check
from tests.cli.running import EXAMPLES, gemmgen
from tests.prove import needs_z3  # noqa: F401  # skips the file without the solver

from .planting import emitted, mistakes

NAIVE = EXAMPLES / "naive.sched"


def of(name: str) -> Subject:
    return Subject(emitted(name))


def test_a_proof_passes() -> None:
    outcome = check(of("naive"), None)
    assert (outcome.layer, outcome.status) == ("P", "passed")
    assert outcome.detail == (
        f"10 facts proved for all sizes that the kernel accepts, by {solver.version()}"
    )


def test_a_refuted_fact_fails_verify(monkeypatch: pytest.MonkeyPatch) -> None:
    mistake = next(each for each in mistakes() if each.name == "an access one column beyond")
    problem = emitted(mistake.program).program.problem
    found = proof_report.examine_program(mistake.planted(), problem, 60.0)
    monkeypatch.setattr(verify_layer, "examine", lambda *_, **__: found)
    outcome = check(of(mistake.program), None)
    assert outcome.status == "failed"
    assert outcome.detail.startswith("global bounds: A is accessed outside")
    assert "at M = " in outcome.detail and "thread (" in outcome.detail
    held = tuple(passed(layer, "") for layer in layers.LAYERS)
    assert layers.exit_code((*held, outcome)) == 1


def test_what_is_not_covered_is_named_and_fails_nothing() -> None:
    outcome = check(of("best/deep"), None)
    assert outcome.status == "skipped"
    assert outcome.reason.startswith("not covered: split_k: 264 parts")
    held = tuple(passed(layer, "") for layer in layers.LAYERS)
    assert layers.exit_code((*held, outcome)) == 0
    assert layers.exit_code((*held, outcome), ("P",)) == 3


@pytest.mark.parametrize("name", ["tiled", "tma"])
def test_what_takes_too_long_is_not_proved(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = check(of(name), 0.01)
    assert outcome.status == "skipped"
    assert outcome.reason.startswith("unknown: not proved within 0.01 s; verify --prove, or ")


def test_what_the_solver_does_not_know_is_not_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = [FactOutcome("races", "unknown", "the solver does not know"), FactOutcome("int32")]
    found = proof_report.ProofReport(emitted("naive").interface, Proof(facts, ()), {})
    monkeypatch.setattr(verify_layer, "examine", lambda *_, **__: found)
    outcome = check(of("naive"), None)
    assert (outcome.status, outcome.reason) == ("skipped", "unknown: the solver does not know")
    found.proof.outcomes, found.proof.satisfiable = facts[1:], False
    assert "were not shown to be satisfiable" in check(of("naive"), None).reason


def test_without_z3_the_layer_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> object:
        raise ImportError(name)

    solver.module.cache_clear()
    monkeypatch.setattr(importlib, "import_module", missing)
    try:
        outcome = check(of("naive"), None)
    finally:
        monkeypatch.undo()
        solver.module.cache_clear()
    assert outcome.status == "skipped" and "pip install '.[prove]'" in outcome.reason


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An empty cache; verdicts are kept in it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(verdicts, "complaint_of", complaint_of)
    monkeypatch.setattr(verdicts, "keep", keep)


@pytest.mark.usefixtures("cache")
def test_what_gemmgen_prove_has_proved_is_not_proved_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert check(of("naive"), 1e-9).status == "skipped"
    assert gemmgen("prove", NAIVE).exit_code == 0
    kept = check(of("naive"), 1e-9)
    assert kept.status == "passed"
    assert check(of("uncoalesced"), 1e-9).status == "skipped"
    monkeypatch.setattr(solver, "version", lambda: "z3 0.0")
    assert check(of("naive"), 1e-9).status == "skipped"


@pytest.mark.usefixtures("cache")
def test_only_proofs_are_kept() -> None:
    for _ in range(2):
        assert "not proved within" in check(of("tiled"), 1e-9).reason
        assert "not covered" in check(of("best/deep"), None).reason


@pytest.mark.parametrize(
    ("options", "seconds"), [((), verify_layer.SECONDS), (("--prove",), None), (("--no-prove",), 0)]
)
def test_how_the_command_asks_for_it(
    options: tuple[str, ...], seconds: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[float | None] = []

    def layer(seconds: float | None) -> layers.Check:
        asked.append(seconds)
        return lambda subject: passed("P", "all facts")

    monkeypatch.setattr(verify_layer, "layer", layer)
    monkeypatch.setattr(layers, "LAYERS", {})
    result = gemmgen("verify", NAIVE, *options, "--json", as_given=True)
    (found,) = json.loads(result.stdout)
    (own,) = found["layers"]
    assert own["layer"] == "P"
    assert asked == ([] if seconds == 0 else [seconds])
    assert own["status"] == ("skipped" if seconds == 0 else "passed")
    assert own["reason"] == ("not asked for: --no-prove" if seconds == 0 else "")


def test_how_python_asks_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layers, "LAYERS", {})
    monkeypatch.setattr(verify_layer, "check", lambda _, seconds: passed("P", f"within {seconds}"))
    said = [str(package.verify(NAIVE, prove=asked)) for asked in (False, True, 3)]
    assert said == [
        "P   skipped  not asked for: prove=True",
        "P   passed   within None",
        "P   passed   within 3.0",
    ]
    for wrong in (-1, float("nan"), "yes"):
        with pytest.raises(UsageError, match="it is True, False or a number of seconds"):
            package.verify(NAIVE, prove=wrong)  # type: ignore[arg-type]


def test_it_is_about_the_schedule_of_an_edited_text() -> None:
    assert "P" in layers.OF_SCHEDULE
    assert layers.ORDER == ("C0", "C1", "C2", "C3", "P", "G2")
    assert set(layers.ORDER) == {*layers.LAYERS, "P"}
