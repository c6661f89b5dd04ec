"""The notebook of the ladder runs on a machine with no GPU, in a few minutes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from budget import slowness

from gemmgen.base.installing import install
from gemmgen.schedule.examples import LADDER

NOTEBOOK = Path(__file__).parents[2] / "examples" / "notebooks" / "ladder.ipynb"
CELLS: list[dict[str, Any]] = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
CODE = ["".join(cell["source"]) for cell in CELLS if cell["cell_type"] == "code"]
SECONDS = 180
"""What a run may take on a machine of known speed, one core of it: two cores take less."""
MISSING = f"no notebook can be run: {install('notebook')}"
_SPENT = "import os\nprint(sum(os.times()[:4]))"


def test_it_is_kept_without_outputs() -> None:
    for cell in CELLS:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [] and cell["execution_count"] is None


@pytest.mark.parametrize("name", LADDER)
def test_it_has_every_rung(name: str) -> None:
    assert f'{name} = rung("{name}")' in CODE
    assert f'check("{name}", {name})' in CODE
    drawn = [text for text in CODE if text.startswith("gemmgen.drawing(") and name in text]
    assert drawn


@pytest.mark.proof
def test_it_runs_and_its_checks_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With empty caches, as after an installation."""
    nbclient = pytest.importorskip("nbclient", reason=MISSING)
    nbformat = pytest.importorskip("nbformat", reason=MISSING)
    pytest.importorskip("ipykernel", reason=MISSING)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(NOTEBOOK.parents[2]))
    before = slowness()
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    notebook.cells.append(nbformat.v4.new_code_cell(_SPENT))
    path = {"metadata": {"path": str(NOTEBOOK.parent)}}
    nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3", resources=path).execute()
    ran = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.execution_count for cell in ran)
    shown = [out for cell in ran for out in cell.outputs if "image/svg+xml" in out.get("data", {})]
    assert len(shown) == len(LADDER)
    spent = float(ran[-1].outputs[0].text)
    assert spent / max(before, slowness()) < SECONDS
