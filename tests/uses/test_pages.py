"""The pages of examples/uses, run as a user runs them, on a machine that shows no GPU."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gemmgen.base.source import Source
from gemmgen.pipeline import compile_source

ROOT = Path(__file__).parents[2]
USES = ROOT / "examples" / "uses"
PAGES = sorted(path.stem for path in USES.glob("*.py") if path.stem != "run")

PLANTS = {
    "a bias taken off": ("linear", "linear", "acc + bias", "acc - bias"),
    "keys for queries": ("attention", "attention_values", "P[b, h, i, j]", "P[b, h, j, i]"),
    "no bias": ("convolution", "convolution", "acc + bias[f]", "acc + 0 * bias[f]"),
    "an update gate inverted": ("gru", "gru_state", "(1 - sigmoid(Z", "(1 + sigmoid(Z"),
    "a bias by sequence": ("lstm", "lstm", "bias[g]", "bias[s]"),
}
"""The page, the schedule, and the words in it that are replaced."""
REFUSED = ("a bias by sequence",)
"""Given away by a shape, before anything runs."""


def ran(page: Path) -> subprocess.CompletedProcess[str]:
    found = (str(ROOT), os.environ.get("PYTHONPATH", ""))
    hidden = {"CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": os.pathsep.join(filter(None, found))}
    return subprocess.run(
        [sys.executable, str(page)],
        env={**os.environ, **hidden},
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_there_is_a_page_for_each_use() -> None:
    assert PAGES == ["attention", "convolution", "gru", "linear", "lstm"]


@pytest.mark.by_default("linear")
@pytest.mark.parametrize("page", PAGES)
def test_a_page_runs_without_a_gpu_and_is_right(page: str) -> None:
    done = ran(USES / f"{page}.py")
    assert done.returncode == 0, done.stdout + done.stderr
    machine, *results = done.stdout.splitlines()
    assert machine.startswith("on the CPU")
    assert results and all(" is within " in line for line in results)


@pytest.mark.proof
@pytest.mark.in_proof(share=3)
@pytest.mark.parametrize("plant", PLANTS)
def test_a_wrong_schedule_makes_its_page_fail(plant: str, tmp_path: Path) -> None:
    page, schedule, before, after = PLANTS[plant]
    for path in (*USES.glob(f"{page}*"), USES / "run.py"):
        shutil.copy(path, tmp_path)
    planted = tmp_path / f"{schedule}.sched"
    text = planted.read_text(encoding="utf-8")
    assert before in text
    planted.write_text(text.replace(before, after), encoding="utf-8")
    done = ran(tmp_path / f"{page}.py")
    assert done.returncode == 1, done.stdout + done.stderr
    if plant in REFUSED:
        assert "CallError" in done.stderr and "has shape" in done.stderr
    else:
        assert " is BEYOND " in done.stdout and not done.stderr


def test_the_mask_that_attention_speaks_of_is_an_epilogue() -> None:
    mask = "where(j <= i, scale * acc, -3e38)"
    assert mask in (USES / "attention.py").read_text(encoding="utf-8")
    text = (USES / "attention_scores.sched").read_text(encoding="utf-8")
    assert "scale * acc" in text
    assert "__global__" in compile_source(Source(text.replace("scale * acc", mask))).text
