"""``--gpu`` of every command that has it: a name in any case, a file, or ``list``."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from gemmgen.cli import main
from gemmgen.cli.group import COMMANDS
from gemmgen.gpu.gpu_file import KEYS
from gemmgen.gpu.gpus import GPUS
from tests.cli.running import gemmgen

ARGUMENTS = {
    "suggest": ("--shape", "64"),
    "explain": ("tiled", "--shape", "64", "--no-next"),
    "diff": ("tiled", "padded", "--shape", "64", "--no-text"),
    "draw": ("tiled",),
    "ladder": ("tiled", "--counts", "--size", "64"),
    "tune": ("space.sched", "--shape", "64", "--list"),
}
FILE = (
    'name = "My GPU"\narch = "sm_89"\nsms = 10\nclock = 2000\nmemory = 500\ncache = 8\npower = 90\n'
)


def commands() -> list[str]:
    """Those that have the option."""
    assert isinstance(main, click.Group)
    with click.Context(main) as context:
        found = {name: main.get_command(context, name) for name in COMMANDS}
    return [name for name, one in found.items() if one and "gpu" in {p.name for p in one.params}]


@pytest.fixture(autouse=True)
def space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "space.sched").write_text("tile m={16, 32} n=16 k=8\ncache_shared A B\n")
    (tmp_path / "my.toml").write_text(FILE)
    monkeypatch.chdir(tmp_path)


@pytest.mark.by_default(but=("ladder", "diff", "explain"))
@pytest.mark.parametrize("command", commands())
def test_a_name_in_any_case_and_a_file_are_taken(command: str) -> None:
    result = [gemmgen(command, *ARGUMENTS[command], "--gpu", x) for x in ("L40S", "l40s", " L 40s")]
    assert {one.exit_code for one in result} == {0} and len({one.stdout for one in result}) == 1
    own = gemmgen(command, *ARGUMENTS[command], "--gpu", "my.toml")
    assert own.exit_code == 0
    if command != "draw":
        assert "My GPU" in own.stdout and "L40S" in result[0].stdout


@pytest.mark.parametrize("command", commands())
def test_a_wrong_gpu_is_one_message(command: str, tmp_path: Path) -> None:
    (tmp_path / "wrong.toml").write_text(FILE.replace("sms", "smms"))
    for gpu, message in (
        ("Voodoo", "gemmgen: gpu='Voodoo': there are H200, "),
        ("x.toml", "gemmgen: x.toml: no such file"),
        ("wrong.toml", "wrong.toml:3:1: error: there is no key `smms`\n"),
    ):
        result = gemmgen(command, *ARGUMENTS[command], "--gpu", gpu)
        assert (result.exit_code, result.stdout) == (2, "") and result.stderr.startswith(message)


@pytest.mark.parametrize("command", commands())
def test_list_prints_the_known_gpus_and_the_keys_of_a_file(command: str) -> None:
    result = gemmgen(command, "--gpu", "list")
    assert result.exit_code == 0
    words = [line.split()[0] for line in result.stdout.splitlines() if line.startswith("  ")]
    assert set(words) >= {*GPUS, *KEYS, "name", "arch"}
