"""Temporary folders end with their process, also with one that a signal ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from gemmgen.base import temporary

MAKE = """
import sys, time
from gemmgen.base import temporary
kept = temporary.folder()
print(kept.name, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def started(place: Path) -> tuple[subprocess.Popen[str], Path]:
    """A process with its own folder, and that folder."""
    env = {**os.environ, "TMPDIR": str(place)}
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        [sys.executable, "-c", MAKE], stdin=pipe, stdout=pipe, env=env, text=True
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_ends_with_the_process(place: Path) -> None:
    process, folder = started(place)
    assert folder.is_dir()
    process.communicate()
    assert process.returncode == 0 and not list(place.iterdir())


def test_what_a_killed_process_leaves_is_removed(place: Path) -> None:
    killed, left = started(place)
    living, used = started(place)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert left.is_dir()
    for folder in place.iterdir():
        os.utime(folder, (0, 0))
    (place / "gemmgen-notes").mkdir()
    os.utime(place / "gemmgen-notes", (0, 0))
    temporary._remove_abandoned(place)
    assert not left.parent.exists() and used.is_dir()
    assert (place / "gemmgen-notes").is_dir(), "no folder of gemmgen's"
    living.communicate()


def test_a_new_folder_is_not_abandoned(place: Path) -> None:
    new = place / "gemmgen-new"
    new.mkdir()
    (new / "lock").touch()
    temporary._remove_abandoned(place)
    assert new.is_dir()


def test_a_fork_leaves_its_parents_folders(place: Path) -> None:
    parent = temporary.folder()
    pid = os.fork()
    if not pid:
        temporary._remove(os.getppid(), parent.name)
        os._exit(0)
    os.waitpid(pid, 0)
    assert Path(parent.name).is_dir()
    parent.cleanup()
