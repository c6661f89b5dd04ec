"""A pass is a function of the program and of its own directive: the text of a program, after any
pass, can be compiled further with the directives that are left."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import pytest

from gemmgen.base.source import Source
from gemmgen.ir.nodes import Program
from gemmgen.ir.text import parse_ir, print_ir
from gemmgen.language import parse_schedule
from gemmgen.passes.ladder import LADDER, passes_of
from gemmgen.pipeline import rewrite

ROOT = Path(__file__).parents[2]
FILES = sorted(path for path in (ROOT / "examples").rglob("*.sched") if "spaces" not in path.parts)
ORDER = ("gemm", *(rung.SPEC.name for rung in LADDER), "fuse_epilogue")
READERS = {"build.py", "intent.py", "ladder.py"}
"""Modules of the passes that have a schedule: its problem, its intent, the order of its passes."""


@pytest.mark.by_default(
    "fused.sched",
    "split_k.sched",
    "async_row_major.sched",
    "hilbert.sched",
    "l2_hints.sched",
    "matvec.sched",
    "odd_extents.sched",
    "swizzled.sched",
    "tensor_core.sched",
    "mma/tf32.sched",
    "hopper/split_f32.sched",
    "hopper/pingpong.sched",
    "hopper/cluster.sched",
    "hopper/overlap_launch.sched",
)
@pytest.mark.parametrize(
    "path", FILES, ids=lambda path: path.relative_to(ROOT / "examples").as_posix()
)
def test_text_after_any_pass_is_compiled_further(path: Path) -> None:
    schedule = parse_schedule(Source(path.read_text(encoding="utf-8"), path.name))
    steps = rewrite(schedule)
    final = print_ir(steps[-1].program)
    for step in steps:
        program, done = parse_ir(print_ir(step.program), Program), ORDER.index(step.directive)
        left = tuple(d for d in schedule.directives if ORDER.index(d.name) > done)
        epilogue = None if step.directive == "fuse_epilogue" else schedule.epilogue
        for rung in passes_of(replace(schedule, directives=left, epilogue=epilogue)):
            program = rung.apply(program)
        assert print_ir(program) == final, f"compiled further after {step.directive}"


def test_examples_have_every_directive() -> None:
    texts = " ".join(path.read_text(encoding="utf-8") for path in FILES).split()
    assert {*ORDER[1:]} <= {*texts}


def test_no_pass_has_the_schedule() -> None:
    found: set[str] = set()
    for path in (ROOT / "gemmgen" / "passes").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and any(a.name == "Schedule" for a in node.names):
                found.add(path.name)
    assert found == READERS
