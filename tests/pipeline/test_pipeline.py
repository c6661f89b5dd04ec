"""The pipeline reads as a table of contents, and goes through the ladder in its order."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import gemmgen.pipeline
from gemmgen.emit.kernel_view import BEGIN, END
from gemmgen.passes.ladder import LADDER
from gemmgen.pipeline import rewrite
from gemmgen.schedule.words import HEADS
from pipeline.running import NAMES, emitted, example

PAGE = (Path(__file__).parents[2] / "docs/language/index.md").read_text(encoding="utf-8")
ORDER = ("gemm", *(rung.SPEC.name for rung in LADDER), "fuse_epilogue")


def test_the_ladder_has_the_order_of_the_design() -> None:
    """The page on the language states the order, in its table of directives."""
    table = PAGE.split("| directive | says |\n|---|---|\n")[1].split("\n\n")[0]
    words = dict.fromkeys(re.findall(r"^\| `(\w+)", table, re.MULTILINE))
    rungs = [word for word in words if word not in HEADS]
    assert ("gemm", *rungs) == ORDER


def test_what_a_pass_builds_on_is_above_it() -> None:
    for rung in LADDER:
        assert all(ORDER.index(name) < ORDER.index(rung.SPEC.name) for name in rung.AFTER)


@pytest.mark.parametrize("name", NAMES)
def test_steps_follow_the_ladder(name: str) -> None:
    schedule = emitted(example(name)).schedule
    steps = [step.directive for step in rewrite(schedule)]
    assert steps == sorted(steps, key=ORDER.index)
    said = {directive.name for directive in schedule.directives}
    assert set(steps) == said | {"gemm"} | ({"fuse_epilogue"} if schedule.epilogue else set())


@pytest.mark.parametrize("name", NAMES)
def test_every_directive_is_cited_in_the_kernel(name: str) -> None:
    kernel = emitted(example(name))
    comments = " ".join(
        line.strip().removeprefix("//").strip()
        for line in kernel.text.split(BEGIN)[1].split(END)[0].splitlines()
        if line.strip().startswith("//")
    )
    for step in rewrite(kernel.schedule)[1:]:
        assert step.directive in comments, f"no comment cites {step.directive}"


def test_the_pipeline_is_short() -> None:
    path = Path(gemmgen.pipeline.__file__)
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 110
    assert all((f.end_lineno or 0) - f.lineno <= 25 for f in functions)
