"""Each pass's docstring shows the program before ==> directive, and after: that is what the pass
does, and both programs compute the same.  The case ``docstring`` of the directive has the schedule
that it takes for granted."""

from __future__ import annotations

import importlib

import pytest

from gemmgen.ir.text import print_ir
from gemmgen.passes.ladder import LADDER
from passes.equality import difference
from passes.excerpts import missing
from passes.test_cases import FOLDER, read, rewritten

NAMES = (*(rung.SPEC.name for rung in LADDER), "fuse_epilogue")


@pytest.mark.by_default(but=("cluster", "warp_specialize"))
@pytest.mark.parametrize("name", NAMES)
def test_shows_what_the_pass_does(name: str) -> None:
    doc = importlib.import_module(f"gemmgen.passes.{name}").__doc__
    assert doc is not None and doc.startswith(f"{name}: ")
    before, directive, after = example(doc)
    assert directive.split()[0] == name
    case = read(FOLDER / name / "docstring.case")
    assert case["apply"] == [directive]
    programs = rewritten([*case.get("given", []), directive], name)
    given, made = map(print_ir, programs)
    bare = [without_origins(line) for line in before]
    assert missing(bare, "\n".join(map(without_origins, given.splitlines()))) is None, given
    assert missing(bare_but_own(after, directive), bare_text(made, directive)) is None, made
    assert difference(*programs) is None


def example(doc: str) -> tuple[list[str], str, list[str]]:
    """The lines before, the directive, the lines after."""
    (arrow,) = (line for line in doc.splitlines() if line.startswith("==> "))
    above, below = doc.split(arrow + "\n")
    before = above.split("\n\n")[-1]
    return before.splitlines(), arrow.removeprefix("==> "), below.splitlines()


def without_origins(line: str) -> str:
    return line.split("   # ")[0]


def bare_but_own(lines: list[str], directive: str) -> list[str]:
    """The lines, with those origins alone that are the directive shown."""
    return [own(line, directive) for line in lines if line.strip()]


def own(line: str, directive: str) -> str:
    text, _, origins = line.partition("   # ")
    return f"{text}   # {directive}" if directive in origins.split("; ") else text


def bare_text(text: str, directive: str) -> str:
    return "\n".join(own(line, directive) for line in text.splitlines())
