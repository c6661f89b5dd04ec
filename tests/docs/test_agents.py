"""AGENTS.md and llms.txt say what is so: figures, commands, pages."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner
from gemmgen_docs import summary

from gemmgen.cli.group import COMMANDS, main

ROOT = Path(__file__).parents[2]
AGENTS = (ROOT / "AGENTS.md").read_text(encoding="utf-8")
LLMS = (ROOT / "docs" / "llms.txt").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| `(gemmgen [^`]+ --json)` \| (.+) \|$", AGENTS, re.MULTILINE)
NEEDS_GPU = "bench"


def test_its_speeds_are_those_of_readme() -> None:
    table = AGENTS.partition("<!-- speeds -->")[2].partition("<!-- /speeds -->")[0]
    for name, _, share, speed, rival in summary.rows():
        assert f"| {name} | {speed} | {share} | {rival} |" in table
    assert table.count("\n| ") == 2 + len(list(summary.rows()))


def test_it_names_no_command_that_is_not_there() -> None:
    for text in (AGENTS, LLMS):
        for name in re.findall(r"`gemmgen ([a-z]+)", text) + re.findall(
            r"^ +gemmgen (\w+)", text, re.M
        ):
            assert name in COMMANDS


@pytest.mark.proof
@pytest.mark.parametrize("line", [line for line, _ in ROWS if f" {NEEDS_GPU} " not in line])
def test_a_command_prints_json_with_what_the_table_names(
    line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    result = CliRunner().invoke(main, shlex.split(line)[1:])
    assert result.exit_code == 0, result.output
    found = json.dumps(json.loads(result.stdout))
    (about,) = (about for each, about in ROWS if each == line)
    for key in re.findall(r"`(\w+)`", about):
        assert f'"{key}": ' in found


def test_it_has_commands_with_json() -> None:
    assert len(ROWS) == 5 and any(NEEDS_GPU in line for line, _ in ROWS)


@pytest.mark.parametrize("target", re.findall(r"\]\(([^)]+)\)", LLMS))
def test_a_page_of_llms_txt_is_there(target: str) -> None:
    page = ROOT / "docs" / target.rstrip("/")
    assert page.with_suffix(".md").is_file() or (page / "index.md").is_file()
