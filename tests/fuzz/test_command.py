"""``gemmgen fuzz``: exit codes, replay lines, files."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gemmgen.cli import main
from gemmgen.expand.ring import Ring
from gemmgen.fuzz import campaign

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="runs kernels, with g++")


def fuzz(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["fuzz", *arguments])


@pytest.mark.proof
def test_a_campaign_without_failures_exits_with_0() -> None:
    done = fuzz("--count", "1", "--jobs", "1", "--json")
    assert done.exit_code == 0
    found = json.loads(done.stdout)
    assert (found["schedules"], found["failures"]) == (1, [])


def test_a_campaign_that_proves_nothing_is_not_a_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign, "run", lambda *_, **__: campaign.Tally(seconds=2.0))
    done = fuzz("--budget", "1")
    assert done.exit_code == 3
    assert done.stderr == "gemmgen: no schedule was proved in 2 s: raise --budget\n"


@pytest.mark.proof
def test_a_failure_is_reported_replayed_and_saved(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(Ring, "before", lambda ring: ring.stage)
    monkeypatch.setattr("gemmgen.fuzz.shrink.SECONDS", 0.5)
    done = fuzz("--count", "6", "--jobs", "1")
    assert done.exit_code == 1
    replay = done.stdout.split("gemmgen fuzz --replay ")[1].split()[0]
    again = fuzz("--replay", replay, "--save", str(tmp_path))
    assert again.exit_code == 1
    (file,) = tmp_path.glob("*.sched")
    assert f"--replay {replay}" in file.read_text(encoding="utf-8")
    monkeypatch.undo()
    assert fuzz("--replay", replay).exit_code == 0


@pytest.mark.proof
def test_words_are_left_out() -> None:
    """The schedule that a replay draws is printed."""
    words = ("--without", "persistent", "--without", "tma", "--without", "hilbert")
    done = fuzz("--replay", "5:2", *words)
    assert done.exit_code == 0
    assert {"persistent", "tma", "hilbert"}.isdisjoint(re.findall(r"\w+", done.stderr))


@pytest.mark.exhaustive
def test_a_failure_without_words_is_replayed_without_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Ring, "before", lambda ring: ring.stage)
    monkeypatch.setattr("gemmgen.fuzz.shrink.SECONDS", 0.5)
    done = fuzz("--count", "12", "--jobs", "1", "--without", "tma", "--without", "persistent")
    assert done.exit_code == 1
    line = done.stdout.split("gemmgen fuzz --replay ")[1].partition("   #")[0]
    assert line.endswith(" --without tma --without persistent")
    assert fuzz("--replay", *line.split()).exit_code == 1


def test_refuses_a_word_that_no_directive_has() -> None:
    done = fuzz("--count", "1", "--without", "tmas")
    assert done.exit_code == 2 and "tmas is neither a directive nor a word of one" in done.output


@pytest.mark.parametrize("wrong", ["7", "1:", ":2", "1:2:3", "a:b", "-1:2"])
def test_refuses_a_replay_that_is_none(wrong: str) -> None:
    assert fuzz("--replay", wrong).exit_code == 2


def test_refuses_a_folder_that_is_not_there(tmp_path: Path) -> None:
    done = fuzz("--count", "1", "--save", str(tmp_path / "none"))
    assert done.exit_code == 2 and "there is no folder" in done.output
