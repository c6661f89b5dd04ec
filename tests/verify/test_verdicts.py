"""What was proved is proved once; what failed, and what is another thing, is proved."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gemmgen.proof import cpu, verdicts
from gemmgen.proof.outcome import Subject
from gemmgen.proof.verdicts import complaint_of

from .subjects import NAIVE, mutant, subject


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(verdicts, "complaint_of", complaint_of)
    return tmp_path


class Prover:
    """Says ``answer``, and counts how often it is asked."""

    def __init__(self, answer: str | None):
        self.answer, self.asked = answer, 0

    def __call__(self) -> str | None:
        self.asked += 1
        return self.answer


def test_is_proved_once(home: Path) -> None:
    right = Prover(None)
    assert complaint_of(right, "C1", "a", 1) is complaint_of(right, "C1", "a", 1) is None
    assert right.asked == 1


@pytest.mark.parametrize("about", [("C2", "a", 1), ("C1", "b", 1), ("C1", "a", 2), ("C1", "a")])
def test_another_thing_is_proved(about: tuple[str, object], home: Path) -> None:
    complaint_of(Prover(None), "C1", "a", 1)
    assert complaint_of(Prover("wrong"), *about) == "wrong"


def test_what_failed_is_proved_again(home: Path) -> None:
    wrong = Prover("wrong")
    assert complaint_of(wrong, "C1", "a") == complaint_of(wrong, "C1", "a") == "wrong"
    assert wrong.asked == 2
    assert complaint_of(Prover(None), "C1", "a") is None


def flip(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (digest,) = (home / "gemmgen").glob("verdict-*/sha256")
    data = digest.read_bytes()
    digest.write_bytes(bytes([data[0] ^ 1]) + data[1:])


def other_sources(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdicts, "PACKAGE", home)
    monkeypatch.setattr(verdicts, "checker", verdicts.checker.__wrapped__)


def switch_off(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMMGEN_CACHE", "0")


@pytest.mark.parametrize("change", [flip, other_sources, switch_off])
def test_is_proved_again(
    change: Callable[[Path, pytest.MonkeyPatch], None], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    complaint_of(Prover(None), "C1", "a")
    change(home, monkeypatch)
    assert complaint_of(Prover("wrong"), "C1", "a") == "wrong"


@pytest.mark.proof
def test_the_layers_remember_a_text_and_no_other(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def checked(one: Subject) -> str:
        return cpu.check(Subject(one.emitted, ((3, 5, 2),))).status

    assert checked(subject(NAIVE)) == "passed"
    monkeypatch.setattr(cpu, "first_complaint", lambda *_: "asked again")
    assert checked(subject(NAIVE)) == "passed"
    assert checked(mutant(NAIVE, "alpha * acc", "acc")) == "failed"


def test_every_source_of_the_package_decides() -> None:
    names = {path.suffix for path in verdicts.PACKAGE.rglob("*") if path.is_file()}
    data = {".pyc", ".typed", ".sched", ".json", ".txt", ".md", ""}
    assert names - data == verdicts._SUFFIXES, "a new kind of source is to be in the key"
