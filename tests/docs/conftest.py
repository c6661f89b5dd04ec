"""The documentation's own modules, which are next to its pages; the site and the notebooks, each
made once for all tests."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from budget import slowness

from gemmgen.base.installing import install

ROOT = Path(__file__).parents[2]
LONGEST = 600
"""Seconds that the site, or a notebook, may take."""
_SPENT = "import os\nprint(sum(os.times()[:4]))"
_CALL = re.compile(r'notebook\("(\w+)"\)')

sys.path.insert(0, str(ROOT / "docs"))

Once = Callable[[str, Callable[[], str]], str]
Executed = Callable[[str], tuple[list[Any], float]]
"""The cells of a notebook with their outputs, and the CPU seconds that they took, on a machine of
known speed."""


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory) -> Once:
    """``once("site", make)``: the text of ``make()``; of several pytest processes the first one
    makes it for all."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent

    def text(name: str, make: Callable[[], str]) -> str:
        log, part = shared / f"{name}.log", shared / f"{name}.part"
        try:
            (shared / f"{name}.begun").mkdir()
        except FileExistsError:
            deadline = time.monotonic() + 2 * LONGEST  # the site may wait for a notebook
            while not log.exists():
                assert time.monotonic() < deadline, f"another process did not make {name}"
                time.sleep(0.5)
        else:
            try:
                made = f"made\n{make()}"
            except Exception:
                made = traceback.format_exc()
            part.write_text(made, encoding="utf-8")
            part.rename(log)
        how, _, made = log.read_text(encoding="utf-8").partition("\n")
        assert how == "made", f"{how}\n{made}"
        return made

    return text


@pytest.fixture(scope="session")
def executed(once: Once, tmp_path_factory: pytest.TempPathFactory) -> Executed:
    """Notebooks, executed by the function that the site executes them with, with empty caches, as
    after an installation."""
    nbformat = pytest.importorskip("nbformat", reason=f"notebooks: {install('notebook')}")
    for needed in ("nbclient", "ipykernel"):
        pytest.importorskip(needed, reason=f"no notebook can be run: {install('notebook')}")

    def execute(name: str) -> str:
        from gemmgen_docs import notebooks

        before = slowness()
        text = (notebooks.FOLDER / f"{name}.ipynb").read_text(encoding="utf-8")
        read = nbformat.reads(text, as_version=4)
        read.cells.append(nbformat.v4.new_code_cell(_SPENT))
        home = str(tmp_path_factory.mktemp(name))
        *cells, last = notebooks.executed(nbformat.writes(read), XDG_CACHE_HOME=home)
        seconds = float(last.outputs[0].text) / max(before, slowness())
        return json.dumps({"cells": cells, "seconds": seconds})

    @cache
    def cells_and_seconds(name: str) -> tuple[list[Any], float]:
        found = json.loads(once(f"notebook_{name}", lambda: execute(name)))
        return [nbformat.from_dict(cell) for cell in found["cells"]], found["seconds"]

    return cells_and_seconds


@pytest.fixture(scope="session")
def site(once: Once, executed: Executed, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site; its notebooks are those that ``executed`` gives."""
    pytest.importorskip("mkdocs", reason=f"mkdocs builds the site: {install('docs')}")
    pytest.importorskip("material", reason=f"the site's theme: {install('docs')}")
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    folder = (shared / "site").resolve()

    def build() -> str:
        from gemmgen_docs import notebooks

        pages = (page.read_text(encoding="utf-8") for page in (ROOT / "docs").rglob("*.md"))
        for name in sorted({name for page in pages for name in _CALL.findall(page)}):
            notebooks.notebook(name, lambda _, name=name: executed(name)[0])
        return _built(folder)

    message = once("site", build)
    assert message.startswith("0\n") and "WARNING" not in message, message
    return folder


def _built(folder: Path) -> str:
    """The exit code of the build, and what it said."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    try:
        built = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=LONGEST
        )
    except subprocess.TimeoutExpired:
        return f"the site took more than {LONGEST} s"
    return f"{built.returncode}\n{built.stderr}"
