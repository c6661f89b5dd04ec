"""The pages of examples/uses on a GPU, run as a user runs them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
USES = ROOT / "examples" / "uses"
PAGES = sorted(path.stem for path in USES.glob("*.py") if path.stem != "run")


@pytest.mark.parametrize("page", PAGES)
def test_a_page_runs_on_the_gpu_and_is_right(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT), prepend=":")
    program = [sys.executable, "-B", str(USES / f"{page}.py")]
    done = subprocess.run(program, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    machine, *results = done.stdout.splitlines()
    assert machine.startswith("on the GPU")
    assert results and all(" is within " in line for line in results)
