"""The TextMate grammar has the language's directives and functions, and colors the examples."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from gemmgen.ir.expr import FUNCTIONS
from gemmgen.language import VOCABULARY
from gemmgen.schedule.examples import LADDER, path_of

FOLDER = Path(__file__).parents[2] / "editors" / "vscode"
GRAMMAR = FOLDER / "syntaxes" / "sched.tmLanguage.json"


def read() -> dict[str, Any]:
    return json.loads(GRAMMAR.read_text(encoding="utf-8"))


def expected() -> dict[str, str]:
    """The patterns that follow from the language."""
    return {
        "directive": rf"^\s*({'|'.join(VOCABULARY.statements)})\b",
        "function": rf"\b({'|'.join(FUNCTIONS)})(?=\()",
    }


def test_directives_and_functions_are_those_of_the_language() -> None:
    repository = read()["repository"]
    for name, pattern in expected().items():
        assert repository[name]["match"] == pattern


def test_every_pattern_is_included_once_and_compiles() -> None:
    grammar = read()
    included = [pattern["include"].removeprefix("#") for pattern in grammar["patterns"]]
    assert included == list(grammar["repository"])
    for rule in grammar["repository"].values():
        re.compile(rule["match"])


@pytest.mark.parametrize("name", LADDER)
def test_the_first_word_of_each_statement_is_a_directive(name: str) -> None:
    directive = re.compile(read()["repository"]["directive"]["match"])
    lines = path_of(name).read_text(encoding="utf-8").splitlines()
    statements = [line for line in lines if line and not line.startswith("#")]
    assert statements
    for line in statements:
        found = directive.match(line)
        assert found is not None and found[1] == line.split()[0]


def test_the_extension_names_its_files() -> None:
    about = json.loads((FOLDER / "package.json").read_text(encoding="utf-8"))["contributes"]
    (language,), (grammar,) = about["languages"], about["grammars"]
    assert language["extensions"] == [".sched"] and grammar["scopeName"] == read()["scopeName"]
    assert (FOLDER / grammar["path"]).resolve() == GRAMMAR
    assert (FOLDER / language["configuration"]).is_file()
