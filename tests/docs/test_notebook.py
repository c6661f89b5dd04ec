"""The notebooks run on a machine with no GPU, in a few minutes, and have what a lesson needs."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest

from gemmgen.schedule.examples import LADDER

from . import page_text
from .conftest import Executed

FOLDER = Path(__file__).parents[2] / "examples" / "notebooks"
NOTEBOOKS = sorted(path.stem for path in FOLDER.glob("*.ipynb"))
SECONDS = {"ladder": 180, "first_kernel": 120, "first_hopper_kernel": 180}
"""What a run may take on a machine of known speed, one core of it: two cores take less.  The two
tutorials take less than five minutes together."""
STEPS = {
    "first_kernel": ("naive", "tiled", "register tile", "vectorized"),
    "first_hopper_kernel": ("tma", "mbarrier", "roles", "wgmma", "ping-pong", "plant a bug"),
}


def cells(name: str, kind: str) -> list[str]:
    """The texts of a notebook's cells of one kind."""
    read = json.loads((FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]
    found: list[dict[str, Any]] = [cell for cell in read if cell["cell_type"] == kind]
    return ["".join(cell["source"]) for cell in found]


def test_each_notebook_has_a_time_limit() -> None:
    assert set(NOTEBOOKS) == set(SECONDS)
    assert sum(SECONDS[name] for name in STEPS) <= 300


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_it_is_kept_without_outputs(name: str) -> None:
    read = json.loads((FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))
    for cell in read["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [] and cell["execution_count"] is None
            ast.parse("".join(cell["source"]))


@pytest.mark.parametrize("name", LADDER)
def test_the_ladder_has_every_rung(name: str) -> None:
    code = cells("ladder", "code")
    assert f'{name} = rung("{name}")' in code
    assert f'check("{name}", {name})' in code
    drawn = [text for text in code if text.startswith("gemmgen.drawing(") and name in text]
    assert drawn


@pytest.mark.parametrize("name", STEPS)
def test_a_tutorial_has_its_steps_drawings_and_proofs(name: str) -> None:
    headings = re.findall(r"^## (.*)", "\n".join(cells(name, "markdown")), re.MULTILINE)
    joined, at = " | ".join(headings).lower(), 0
    for step in STEPS[name]:
        if step == "mbarrier":
            step = "tma"  # the same section explains both
        at = joined.index(step, at)
    code = "\n".join(cells(name, "code"))
    assert code.count("gemmgen.drawing(") >= 3 and code.count("prove(") > 3


@pytest.mark.parametrize("name", STEPS)
def test_each_exercise_of_a_tutorial_has_a_folded_answer(name: str) -> None:
    text = "\n".join(cells(name, "markdown"))
    exercises = re.findall(r"^\*\*Exercise (\d)\.\*\*", text, re.MULTILINE)
    assert exercises == ["1", "2", "3", "4", "5"]
    answers = re.findall(r"<details><summary>Answer</summary>\n\n(.*?)\n\n</details>", text, re.S)
    assert len(answers) == len(exercises)
    assert min(map(len, answers)) > 250  # an insight, not a number


@pytest.mark.proof
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_it_runs_and_its_checks_hold(name: str, executed: Executed) -> None:
    """With empty caches, as after an installation; the site shows what was executed here."""
    found, seconds = executed(name)
    ran = [cell for cell in found if cell.cell_type == "code"]
    assert [cell.source for cell in ran] == cells(name, "code")
    assert all(cell.execution_count for cell in ran)
    shown = [out for cell in ran for out in cell.outputs if "image/svg+xml" in out.get("data", {})]
    assert len(shown) == "".join(cells(name, "code")).count("gemmgen.drawing(")
    assert seconds < SECONDS[name]


@pytest.mark.proof
@pytest.mark.parametrize("name", STEPS)
def test_the_site_shows_what_a_tutorial_printed(name: str, executed: Executed, site: Path) -> None:
    text = page_text.of_page(site, f"tutorials/{name}.md")
    ran = [cell for cell in executed(name)[0] if cell.cell_type == "code"]
    outputs = (out for cell in ran for out in cell.outputs)
    printed = [out.text for out in outputs if out.get("name") == "stdout"]
    assert len(printed) > 5
    assert [each for each in printed if page_text.words(each) not in text] == []
