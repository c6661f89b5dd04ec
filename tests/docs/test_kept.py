"""What a page's command prints is kept for the next build of the site, by the sources."""

from __future__ import annotations

from pathlib import Path

import pytest
from gemmgen_docs import commands

LINE = "gemmgen help tile"


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(commands, "run", commands.run.__wrapped__)
    monkeypatch.setattr(commands.device, "missing", lambda: "no GPU here")


def test_a_command_runs_once(monkeypatch: pytest.MonkeyPatch) -> None:
    first = commands.run(LINE)
    assert "tile" in first.out
    monkeypatch.setattr(commands, "_run", None)
    assert commands.run(LINE) == first


@pytest.mark.parametrize("changed", ["_sources", "_compiler"])
def test_other_sources_or_another_compiler_run_it_again(
    changed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands.run(LINE)
    again = commands.Ran("again", "", 0)
    monkeypatch.setattr(commands, changed, lambda: "another")
    monkeypatch.setattr(commands, "_run", lambda line, files: again)
    assert commands.run(LINE) == again


def test_where_a_gpu_is_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands.device, "missing", lambda: None)
    commands.run(LINE)
    again = commands.Ran("again", "", 0)
    monkeypatch.setattr(commands, "_run", lambda line, files: again)
    assert commands.run(LINE) == again


def test_another_text_of_a_file_runs_it_again() -> None:
    line = "gemmgen check mine.sched"
    found = [commands.run(line, (("mine.sched", text),)) for text in ("tile m=8\n", "tile n=8\n")]
    assert "tile m=8" in found[0].err and "tile n=8" in found[1].err
