"""What is kept for the next process: used, never trusted, and never needed."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from gemmgen import caches
from gemmgen.pipeline import compile_source
from gemmgen.sim import toolchain
from gemmgen.sim.run import CompiledKernel
from gemmgen.source import Source

from .running import EXAMPLES, fresh

EMIT = ("emit", EXAMPLES / "naive.sched")


def emitted(home: Path) -> str:
    done = fresh(*EMIT, env={**os.environ, "XDG_CACHE_HOME": str(home)})
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode()


def test_a_damaged_cache_changes_nothing(tmp_path: Path) -> None:
    known = emitted(tmp_path)
    kept = sorted((tmp_path / "gemmgen").iterdir())
    assert any(path.suffix == ".tables" for path in kept), "no tables of the grammar"
    assert any("jinja2" in path.name for path in kept), "no compiled templates"
    assert emitted(tmp_path) == known
    for path in kept:
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    assert emitted(tmp_path) == known
    for path in kept:
        path.write_bytes(b"not this")
    assert emitted(tmp_path) == known


def test_without_a_folder_nothing_is_kept() -> None:
    assert emitted(Path("/dev/null")).startswith("// ")


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(caches, "folder", caches.folder.__wrapped__)
    return tmp_path


def test_the_folder_is_the_users_own(home: Path) -> None:
    found = caches.folder()
    assert found == home / "gemmgen" and found.stat().st_mode & 0o777 == 0o700


def test_refuses_a_folder_that_others_may_write(home: Path) -> None:
    (home / "gemmgen").mkdir()
    (home / "gemmgen").chmod(0o777)
    assert caches.folder() is None


def test_refuses_a_link(home: Path) -> None:
    (home / "elsewhere").mkdir(mode=0o700)
    (home / "gemmgen").symlink_to(home / "elsewhere")
    assert caches.folder() is None


@pytest.mark.skipif(shutil.which("g++") is None, reason="compiles the runner, with g++")
def test_the_runner_is_compiled_once_and_again_where_it_is_damaged(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: list[int] = []
    gxx = toolchain._gxx

    def counting(*arguments: str, directory: Path | None = None) -> None:
        compiled.append("-O2" in arguments)
        gxx(*arguments, directory=directory)

    monkeypatch.setattr(toolchain, "_gxx", counting)
    runner = toolchain._runner_objects.__wrapped__
    monkeypatch.setattr(toolchain, "_runner_objects", runner)
    for runs, damage in ((1, False), (1, False), (2, True)):
        if damage:
            (kept,) = (home / "gemmgen").glob("runner-*")
            (kept / "fibers.o").write_bytes(b"not this")
        kernel = compile_source(Source((EXAMPLES / "naive.sched").read_text(encoding="utf-8")))
        CompiledKernel(kernel.text, kernel.interface).close()
        assert sum(compiled) == runs
