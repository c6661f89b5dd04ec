"""What tests share: this folder is on their path (``from pipeline.running import check``)."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parent / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="write the texts of tests/golden anew"
    )
    parser.addoption(
        "--proof", action="store_true", help="run the tests marked proof as well: all there are"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Without ``--proof``, or a ``-m`` that names the mark, tests marked proof are deselected."""
    if config.getoption("--proof") or "proof" in config.getoption("-m"):
        return
    left_out = [item for item in items if item.get_closest_marker("proof")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("proof")]


def pytest_configure(config: pytest.Config) -> None:
    """Fresh processes find what a user's would: compiled modules, and gemmgen's own caches.

    Both are kept beside pytest's cache, so that nothing is written into the tree or the home.
    """
    if hasattr(config, "workerinput") or getattr(config, "cache", None) is None:
        return  # a worker has the environment of the process that began it
    os.environ["XDG_CACHE_HOME"] = str(config.cache.mkdir("home"))
    if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
        os.environ["PYTHONPYCACHEPREFIX"] = str(config.cache.mkdir("bytecode"))


@pytest.fixture
def golden(pytestconfig: pytest.Config) -> Callable[[str, str], str]:
    """``golden("tiled.cu", text)``: the file's text, which ``--update-golden`` first writes."""

    def read(name: str, text: str) -> str:
        path = GOLDEN / name
        if pytestconfig.getoption("--update-golden"):
            draft = path.with_suffix(f".{os.getpid()}")
            draft.write_text(text, encoding="utf-8", newline="\n")
            draft.replace(path)
        assert path.exists(), f"no {path.name}: pytest tests/golden --update-golden writes it"
        return path.read_bytes().decode()

    return read
