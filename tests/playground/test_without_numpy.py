"""Drawings and counts are the same with the arrays of the page as with NumPy."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from gemmgen_playground import answers, arrays

from gemmgen.schedule import examples

DOCS = Path(answers.__file__).parents[1]
ASKED = """
import json, sys, numpy
assert numpy.__version__ == "0", numpy.__file__
from gemmgen_playground.answers import answer
print(json.dumps([json.loads(answer(json.dumps(q))) for q in json.load(sys.stdin)]))
"""
_ALL = tuple(name for name in examples.names() if not name.startswith("spaces/"))
NAMES = tuple(sorted({*_ALL[::48], "tiled", "swizzled", "hopper/pingpong", "mma/mma"}))
"""A sample: an example takes some seven seconds.  Threads, shared tiles with and without a swizzle,
tensor cores, and Hopper's roles, which copy by TMA and multiply by wgmma."""


def shape_of(name: str) -> str:
    """A shape that the example takes."""
    text = answers._text(name)
    batched = answers.kernel_of(text).program.problem.batch
    return "4096,4096,4096".replace(",", "x") + "".join(f",{letter}=2" for letter in batched)


@pytest.mark.proof
@pytest.mark.in_proof(share=3)
@pytest.mark.parametrize("name", NAMES)
def test_an_example_has_the_same_answers(name: str, tmp_path: Path) -> None:
    shutil.copytree(Path(arrays.__file__).parent, tmp_path / "numpy")
    text = answers._text(name)
    drawings = answers.kinds()["kinds"]
    questions = [["compiled", text], ["counted", text, shape_of(name)]]
    questions += [["drawn", text, kind] for kind in drawings]
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{DOCS}:{DOCS.parent}"}
    run = subprocess.run(
        [sys.executable, "-c", ASKED],
        input=json.dumps(questions),
        capture_output=True,
        text=True,
        env=environment,
    )
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)
    assert len(found) == len(questions)
    for question, other in zip(questions, found, strict=True):
        assert other == json.loads(answers.answer(json.dumps(question))), question[0::2]
    assert "text" in found[1], found[1]
    assert all("svg" in found[at] or "report" in found[at] for at in range(2, len(found)))
