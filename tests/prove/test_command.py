"""``gemmgen prove`` and its certificates."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import pytest

from gemmgen.cli import prove as command
from gemmgen.prove import proof_report, solver
from gemmgen.prove.certificate import certificate, digest
from tests.cli.running import EXAMPLES, gemmgen
from tests.prove import needs_z3  # noqa: F401  # skips the file without the solver

from .planting import emitted, mistakes

NAIVE, TILED = EXAMPLES / "naive.sched", EXAMPLES / "tiled.sched"


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The certificate of the naive kernel, as the command writes it."""
    path = tmp_path_factory.mktemp("proof") / "naive.proof.json"
    result = gemmgen("prove", NAIVE, "-o", path, "--json")
    assert result.exit_code == 0
    (found,) = json.loads(result.stdout)
    assert found["status"] == "proved" and found["file"] == str(NAIVE)
    assert {one["status"] for one in found["facts"]} == {"proved"}
    assert found["second_opinion"] is None
    return path


def test_a_certificate_vouches_for_its_text(kept: Path) -> None:
    found = json.loads(kept.read_text())
    assert found["text"] == digest(emitted("naive")) and found["solver"] == solver.version()
    result = gemmgen("check", NAIVE, "--proof", kept)
    assert result.exit_code == 0 and f"{kept}: the proof of this text" in result.stdout


def test_a_certificate_of_another_text_is_refused(kept: Path) -> None:
    result = gemmgen("check", TILED, "--proof", kept)
    assert result.exit_code == 1 and "is the proof of another text" in result.stderr
    result = gemmgen("check", NAIVE, TILED, "--proof", kept)
    assert result.exit_code == 2 and "is of one FILE, not of 2" in result.stderr


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda proof: proof["facts"].pop(), "says nothing of coverage"),
        (lambda proof: proof["facts"][0].update(status="unknown"), "global bounds unknown"),
        (lambda proof: proof.update(status="refuted"), "is no proof"),
        (lambda proof: proof.update(format=0), "is not a proof of format 1"),
        (lambda proof: proof.update(facts=[1]), "is not a proof of format 1"),
        (lambda proof: proof.pop("facts"), "is not a proof of format 1"),
    ],
)
def test_a_certificate_that_says_less_is_refused(
    kept: Path, tmp_path: Path, change: object, said: str
) -> None:
    proof = json.loads(kept.read_text())
    change(proof)
    path = tmp_path / "changed.json"
    path.write_text(json.dumps(proof))
    result = gemmgen("check", NAIVE, "--proof", path)
    assert result.exit_code in (1, 2) and said in result.stderr


@pytest.mark.parametrize("text", ["", "[]", "{}", "3", "not JSON", "[" * 100_000])
def test_what_is_no_certificate_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "wrong.json"
    path.write_text(text)
    result = gemmgen("check", NAIVE, "--proof", path)
    assert result.exit_code == 2 and "gemmgen prove -o" in result.stderr


def test_a_missing_certificate_is_one_sentence(tmp_path: Path) -> None:
    result = gemmgen("check", NAIVE, "--proof", tmp_path / "none.json")
    assert result.exit_code == 2 and "no such file" in result.stderr


def test_the_report_names_facts_assumptions_and_solver() -> None:
    result = gemmgen("prove", NAIVE)
    assert result.exit_code == 0 and result.stderr == ""
    first, assumed, *facts, last = result.stdout.splitlines()
    assert first == str(NAIVE) and "lda >= K" in assumed
    assert len(facts) == 10 and all("  proved   " in line for line in facts)
    assert "proved for all sizes" in last and solver.version() in last


def refuted(name: str, monkeypatch: pytest.MonkeyPatch, *options: str) -> tuple[int, str]:
    """The command on a program with a planted mistake."""
    mistake = next(each for each in mistakes() if each.name == name)
    problem = emitted(mistake.program).program.problem
    found = proof_report.examine_program(mistake.planted(), problem, 60.0)
    monkeypatch.setattr(proof_report, "examine", lambda *_: found)
    result = gemmgen("prove", EXAMPLES / f"{mistake.program}.sched", *options)
    return result.exit_code, result.stdout


def test_a_refutation_has_sizes_thread_statement_directive_and_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    code, said = refuted("an access one column beyond", monkeypatch)
    assert code == 1
    assert "global bounds    refuted  A is accessed outside" in said
    for part in (
        "at M = ",
        "K = ",
        "block ",
        "thread (",
        "address: A[",
        "statement: assign A_shared",
    ):
        assert part in said
    assert "from: cache_shared A[m, k] B[k, n]" in said
    assert "out of bounds of" in said and "run: " in said


@pytest.mark.proof
def test_a_race_is_not_confirmed_by_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    code, said = refuted("no barrier after the tile was multiplied", monkeypatch, "--json")
    (found,) = json.loads(said)
    assert code == 1 and found["status"] == "refuted"
    own = next(one for one in found["facts"] if one["fact"] == "races")
    example = own["counterexample"]
    assert not example["confirmed"] and "the interpreter finds nothing wrong" in example["run"]
    assert example["sizes"]["K"] > 32 and "A_shared[0][0]" in own["reason"]


def test_unknown_is_exit_code_3() -> None:
    result = gemmgen("prove", "best/deep")
    assert result.exit_code == 3
    assert "10 facts unknown" in result.stdout and "split_k: 264 parts" in result.stdout


def test_codes_of_several_files() -> None:
    assert command.CODES == {"proved": 0, "refuted": 1, "unknown": 3}
    result = gemmgen("prove", "best/deep", NAIVE)
    assert result.exit_code == 3 and "proved for all sizes" in result.stdout


def test_without_z3_the_command_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> object:
        raise ImportError(name)

    solver.module.cache_clear()
    monkeypatch.setattr(importlib, "import_module", missing)
    try:
        with pytest.raises(solver.UsageError, match=r"pip install '.\[prove\]'"):
            solver.version()
    finally:
        monkeypatch.undo()
        solver.module.cache_clear()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("naive", "tiled", "-o", "x.json"), "-o x.json is the certificate of one FILE, not of 2"),
        (("naive", "-o", "nowhere/x.json"), "there is no folder"),
        (("naive", "--seconds", "0"), "0.0 is not in the range"),
        (("naive", "--seconds", "nan"), "nan is not a number of seconds"),
        (("none.sched",), "none.sched: no such file"),
    ],
)
def test_a_wrong_argument_is_one_error(arguments: tuple[str, ...], said: str) -> None:
    result = gemmgen("prove", *arguments)
    assert result.exit_code == 2 and said in result.stderr


def test_the_certificate_of_what_is_refuted_is_no_proof(tmp_path: Path) -> None:
    mistake = next(each for each in mistakes() if each.name == "C before it was scaled")
    kernel = emitted(mistake.program)
    found = proof_report.examine_program(mistake.planted(), kernel.program.problem, 60.0)
    path = tmp_path / "refuted.json"
    path.write_text(certificate(kernel, found))
    result = gemmgen("check", NAIVE, "--proof", path)
    assert result.exit_code == 1 and "formula refuted" in result.stderr
