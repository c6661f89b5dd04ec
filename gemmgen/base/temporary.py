"""Folders that end with the process, however it ends.

All are in one folder a process, which holds a lock.  The first folder of another process removes
those whose lock nobody holds any more: of processes that a signal ended.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import tempfile
import time
from functools import cache
from pathlib import Path

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None

PREFIX = "gemmgen-"
_LOCK = "lock"
_SECONDS = 60
"""How old a folder without a holder must be: a new one is locked only after it was made."""


def folder(prefix: str = "") -> tempfile.TemporaryDirectory[str]:
    """A new folder, removed with the value or with the process."""
    return tempfile.TemporaryDirectory(prefix=prefix, dir=_of_process(os.getpid()))


@cache
def _of_process(pid: int) -> str:
    """The folder of this process; one that forks off has its own."""
    _remove_abandoned(Path(tempfile.gettempdir()))
    path = tempfile.mkdtemp(prefix=PREFIX)
    if fcntl is not None:
        handle = os.open(Path(path, _LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(handle, fcntl.LOCK_EX)
    atexit.register(_remove, pid, path)
    return path


def _remove(pid: int, path: str) -> None:
    if pid == os.getpid():
        shutil.rmtree(path, ignore_errors=True)


def _remove_abandoned(within: Path) -> None:
    for found in within.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            if _is_abandoned(found):
                shutil.rmtree(found, ignore_errors=True)


def _is_abandoned(found: Path) -> bool:
    """Raises OSError where the folder is not one of these."""
    if fcntl is None or found.lstat().st_uid != os.getuid() or found.is_symlink():
        return False
    if time.time() - found.stat().st_mtime < _SECONDS:
        return False
    handle = os.open(found / _LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(handle)
    return True
