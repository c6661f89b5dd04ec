"""How emitted texts are laid out: indentation of comments and parameters, no name for nothing."""

from __future__ import annotations

import re
from itertools import groupby
from pathlib import Path

import pytest

from gemmgen.base.source import Source
from gemmgen.pipeline import compile_source

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples"
OTHERS = ("hopper", "mma", "steps")
"""Folders of examples without goldens."""
NAMED = [
    *(path.relative_to(HERE).as_posix() for path in sorted(HERE.glob("**/*.cu"))),
    *(f"{f}/{path.name}" for f in OTHERS for path in sorted((EXAMPLES / f).glob("*.sched"))),
]
pytestmark = pytest.mark.by_default("*.cu", "hopper/split_f32*", "mma/split_f32*")


def text_of(name: str) -> str:
    if name.endswith(".cu"):
        return (HERE / name).read_text(encoding="utf-8")
    return compile_source(Source((EXAMPLES / name).read_text(encoding="utf-8"), name)).text


@pytest.mark.parametrize("name", NAMED)
def test_lines_of_the_header_are_titles_or_indented(name: str) -> None:
    """What is broken from an indented line stays indented."""
    header = text_of(name).partition("// schedule")[2].partition("\nnamespace")[0]
    lines = ("// schedule" + header).strip().splitlines()
    for indented, group in groupby(lines, key=lambda line: line.startswith("//    ")):
        if not indented:
            title = " ".join(group)
            assert title.endswith(":"), title


@pytest.mark.parametrize("name", NAMED)
def test_parameters_are_indented_once(name: str) -> None:
    for found in re.finditer(r"^cudaError_t launch_\w+\((.*?)\)\n\{", text_of(name), re.M | re.S):
        _, *lines = found[1].split("\n")
        assert all(re.match(r" {4}\S", line) for line in lines), found[1]


@pytest.mark.parametrize("name", NAMED)
def test_no_name_is_for_the_next_line_alone(name: str) -> None:
    text = text_of(name)
    for value in re.finditer(r"const int (\w+) = [^;]+;\n\s*\w+ = \1;", text):
        assert len(re.findall(rf"\b{value[1]}\b", text)) > 2, value[0]
