"""C3 fails on errors alone: a figure of speed is a note, which every report shows."""

from __future__ import annotations

from dataclasses import replace

import compilers
import pytest
from cli.running import EXAMPLES, gemmgen

from gemmgen.api.tools import Verification
from gemmgen.proof import compiled, multiplies_code, tma_code
from gemmgen.proof.code_findings import Findings
from gemmgen.proof.layers import exit_code
from gemmgen.proof.nvcc_object import NvccObject
from gemmgen.proof.outcome import Outcome, passed

from .subjects import NAIVE, subject

SLOW = "sm_80: the loop over k tiles has 18 R2UR, at most 4 are usual"
WRONG = "sm_80: the machine code has no UTMALDG"
CHECKS = (tma_code, multiplies_code)


def c3(monkeypatch: pytest.MonkeyPatch, *found: Findings) -> Outcome:
    """The outcome of C3 where its checks of machine code find this."""
    for check, findings in zip(CHECKS, found, strict=True):
        monkeypatch.setattr(check, "findings", lambda _, findings=findings: findings)
    monkeypatch.setenv("GEMMGEN_CACHE", "0")
    monkeypatch.setattr(
        compiled.nvcc_object, "compiled", lambda *_: NvccObject(None, "no launcher")
    )
    monkeypatch.setattr(compiled, "ARCHITECTURES", ())
    return compiled.check(subject(NAIVE))


def test_notes_fail_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    compilers.needs_sass()
    outcome = c3(monkeypatch, Findings(notes=(SLOW,)), Findings(notes=(SLOW,)))
    assert outcome.status == "passed" and outcome.notes == (SLOW, SLOW)
    assert exit_code((passed("C1", ""), passed("C2", ""), outcome), ("C3",)) == 0


def test_errors_fail_beside_notes(monkeypatch: pytest.MonkeyPatch) -> None:
    compilers.needs_sass()
    outcome = c3(monkeypatch, Findings(notes=(SLOW,)), Findings(errors=(WRONG,)))
    assert outcome.status == "failed" and outcome.detail == WRONG and outcome.notes == (SLOW,)


def test_notes_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = replace(passed("C3", "NVRTC compiles it"), notes=(SLOW, "another"))
    monkeypatch.setattr(compiled, "check", lambda _: outcome)
    printed = gemmgen("verify", EXAMPLES / "naive.sched", "--shape", "2x3x5")
    assert printed.exit_code == 0
    lines = printed.stdout.splitlines()
    at = lines.index("  C3  passed   NVRTC compiles it")
    assert lines[at + 1 : at + 3] == [f"{'':15}note: {SLOW}", f"{'':15}note: another"]
    shown = str(Verification((outcome,), 0)).splitlines()
    assert shown == [
        "C3  passed   NVRTC compiles it",
        f"{'':13}note: {SLOW}",
        f"{'':13}note: another",
    ]
