"""The documentation's own modules, which are next to its pages, and the site, built once."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gemmgen.base.installing import install

ROOT = Path(__file__).parents[2]
LONGEST = 600
"""Seconds that the site may take."""

sys.path.insert(0, str(ROOT / "docs"))


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site; of several pytest processes the first one builds it for all."""
    pytest.importorskip("mkdocs", reason=f"mkdocs builds the site: {install('docs')}")
    pytest.importorskip("material", reason=f"the site's theme: {install('docs')}")
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    folder, log = (shared / "site").resolve(), shared / "site.log"
    try:
        (shared / "site.begun").mkdir()
    except FileExistsError:
        deadline = time.monotonic() + LONGEST
        while not log.exists():
            assert time.monotonic() < deadline, "another process did not build the site"
            time.sleep(0.5)
    else:
        said = _built(folder)
        (shared / "site.part").write_text(said, encoding="utf-8")
        (shared / "site.part").rename(log)
    message = log.read_text(encoding="utf-8")
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
