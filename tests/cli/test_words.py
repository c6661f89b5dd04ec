"""What a user gets who misspells, has no file yet, closes the output, or presses Ctrl-C."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from gemmgen.base.errors import UsageError
from gemmgen.base.source import Source
from gemmgen.cli import files, group, options
from gemmgen.schedule import examples
from gemmgen.schedule.read import read_source

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
    assert "did you mean vectorized?" in gemmgen("check", "vectorised").stderr


TAKING = tuple(
    name
    for name in group.COMMANDS
    if {"file", "files", "before"}
    & {p.name for p in import_module(f"gemmgen.cli.{name}").command.params}
)
"""The commands that take schedules."""


def calls_of(command: str, schedule: str) -> list[list[str]]:
    """The command with one schedule (of two, the second), as an argument and as an option."""
    first = ["naive"] if command == "diff" else []
    rest = ["--shape", "64"] if command == "tune" else []
    named = [word for each in (*first, schedule) for word in ("--schedule", each)]
    return [[command, *first, schedule, *rest], [command, *named, *rest]]


def test_all_that_take_schedules_are_known() -> None:
    assert set(group.COMMANDS) - set(TAKING) == {
        "fuzz",
        "suggest",
        "library",
        "cache",
        "help",
        "example",
    }


@pytest.mark.by_default("emit", "draw")
@pytest.mark.parametrize("command", TAKING)
def test_a_missing_example_is_answered_by_what_writes_it(command: str, folder: Path) -> None:
    for path in ("vectorized.sched", "examples/vectorized.sched"):
        for call in calls_of(command, path):
            result = gemmgen(*call)
            assert result.exit_code == 2, result.stderr
            hint = "`gemmgen example vectorized -o vectorized.sched` writes the example"
            assert f"{path}: no such file; {hint} of that name" in result.stderr
    assert gemmgen("example", "vectorized", "-o", "vectorized.sched").exit_code == 0
    assert gemmgen("check", "vectorized.sched").exit_code == 0


@pytest.mark.parametrize("command", TAKING)
def test_every_command_knows_the_examples(
    command: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reported(path: str) -> Source:
        if path.endswith("vectorized.sched"):
            raise UsageError(f"{path} is read")
        return read_source(path)

    monkeypatch.setattr(files, "read_source", reported)
    for call in calls_of(command, "vectorized"):
        result = gemmgen(*call)
        assert f"{examples.path_of('vectorized')} is read" in result.stderr, result.stderr
    assert "--schedule FILE" in gemmgen(command, "--help").stdout


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


@pytest.mark.usefixtures("estimated")
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
