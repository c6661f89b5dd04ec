"""What a user gets who misspells, has no file yet, closes the output, or presses Ctrl-C."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gemmgen.cli import group, options

from .running import EXAMPLES, ROOT, gemmgen

TILED = "tile m=16 n=16 k=8\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_misspelt_command_is_answered() -> None:
    result = gemmgen("emitt", "x.sched")
    assert result.exit_code == 2 and "Did you mean 'emit'?" in result.stderr
    assert "There are emit, check" in gemmgen("zzz").stderr


def test_a_misspelt_file_is_answered(folder: Path) -> None:
    (folder / "my_tiles.sched").write_text(TILED)
    result = gemmgen("check", "my_tile.sched")
    assert result.exit_code == 2
    assert "my_tile.sched: no such file; did you mean my_tiles.sched?" in result.stderr


def test_an_examples_name_is_the_example(folder: Path) -> None:
    named = gemmgen("emit", "tiled")
    assert named.exit_code == 0
    assert named.stdout == gemmgen("emit", EXAMPLES / "tiled.sched").stdout
    for command in (("emit", "--schedule"), ("explain",), ("check",)):
        result = gemmgen(*command, "vectorized.sched")
        assert result.exit_code == 2
        assert "`gemmgen example vectorized` prints the example" in result.stderr
    assert "did you mean vectorized?" in gemmgen("check", "vectorised").stderr


@pytest.mark.parametrize("command", ["check", "fmt", "show", "emit", "draw"])
def test_every_command_takes_schedule_as_an_option(command: str, folder: Path) -> None:
    (folder / "x.sched").write_text(TILED)
    plain = gemmgen(command, "x.sched")
    for option in (["--schedule", "x.sched"], ["--schedule=x.sched"]):
        again = gemmgen(command, *option)
        assert (again.exit_code, again.stdout) == (
            plain.exit_code,
            plain.stdout,
        ) and not again.stderr
    assert "--schedule FILE" in gemmgen(command, "--help").stdout


@pytest.mark.parametrize("command", ["verify", "bench", "ladder", "tune", "explain", "draw"])
def test_longer_commands_list_the_option(command: str) -> None:
    assert "--schedule FILE" in gemmgen(command, "--help").stdout


def test_a_refused_file_is_a_row_of_the_ladder(folder: Path) -> None:
    (folder / "good.sched").write_text(TILED)
    (folder / "bad.sched").write_text("tile m=7 n=3 k=8\n")
    options = ("--counts", "--size", "64", "good.sched", "bad.sched")
    result = gemmgen("ladder", *options)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[2].startswith("good") and lines[-1].startswith("bad     refused: ")
    good, bad = json.loads(gemmgen("ladder", *options, "--json").stdout)
    assert good["error"] is None and good["counted"]
    assert bad["name"] == "bad" and bad["counted"] is None and bad["error"] in lines[-1]
    assert gemmgen("ladder", "--counts", "bad.sched", "bad.sched").stdout == ""


def test_a_closed_output_is_an_error(folder: Path) -> None:
    (folder / "x.sched").write_text(TILED)
    run = f"{sys.executable} -m gemmgen emit x.sched >&-"
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(["sh", "-c", run], capture_output=True, text=True, env=env)
    assert done.returncode == 2 and "standard output is closed" in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full is Linux's")
@pytest.mark.parametrize("arguments", [["verify", "--help"], ["--help"]])
def test_a_help_text_that_cannot_be_written_is_a_sentence(arguments: list[str]) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "gemmgen", *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
        )
    assert done.returncode == 2
    assert done.stderr == "gemmgen: standard output can't be written: No space left on device\n"


def test_ctrl_c_is_no_failed_check(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(path: str) -> None:
        raise KeyboardInterrupt

    (folder / "x.sched").write_text(TILED)
    monkeypatch.setattr(options, "read_schedule", interrupted)
    result = gemmgen("emit", "x.sched")
    assert result.exit_code == group.INTERRUPTED == 130
    assert result.stderr == "gemmgen: interrupted\n" and result.stdout == ""


def test_a_files_name_steers_no_terminal(folder: Path) -> None:
    (folder / "\x1b[2Jx.sched").write_text("oops\n")
    for name in ("\x1b[2Jx.sched", "\x1b[31mmissing.sched"):
        result = gemmgen("check", name)
        assert result.exit_code == 2 and "\x1b" not in result.stderr + result.stdout
