"""Bytecode of what a run imports: compiled once, by all workers of ``pytest -n`` together.

Each worker would compile the package, and rewrite the assertions of the tests, for itself: in a
fresh clone ten seconds.  Here each has its own order and leaves out what is compiled.
Python and pytest check what they find, so a mistake here costs time alone.
"""

from __future__ import annotations

import importlib.util
import py_compile
import random
import sys
from fnmatch import fnmatch
from pathlib import Path

import pytest
from _pytest.assertion import rewrite
from _pytest.assertion.rewrite import assertstate_key

TESTS = Path(__file__).parent


def compile_share(config: pytest.Config, worker: str) -> None:
    """Compile what no other worker has, in this worker's own order."""
    state = config.stash.get(assertstate_key, None)
    if sys.dont_write_bytecode or state is None:
        return
    patterns = ("conftest.py", *config.getini("python_files"))
    files = sorted((*TESTS.parent.joinpath("gemmgen").rglob("*.py"), *TESTS.rglob("*.py")))
    random.Random(worker).shuffle(files)  # else two workers meet at a file and stay together
    for path in files:
        if path.is_relative_to(TESTS) and any(fnmatch(path.name, each) for each in patterns):
            kept = rewrite.get_cache_dir(path) / f"{path.stem}{rewrite.PYC_TAIL}"
            if not _is_newer(kept, path):
                about, code = rewrite._rewrite_test(path, config)
                kept.parent.mkdir(parents=True, exist_ok=True)
                rewrite._write_pyc(state, code, about, kept)
        elif not _is_newer(kept := Path(importlib.util.cache_from_source(path)), path):
            py_compile.compile(str(path), str(kept), doraise=False, quiet=2)


def _is_newer(kept: Path, source: Path) -> bool:
    try:
        return kept.stat().st_mtime >= source.stat().st_mtime
    except OSError:
        return False
