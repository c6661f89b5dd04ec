"""Temporary folders that are removed even if a signal ends the process.

All are in one folder for each process, which holds a lock on it.  When another process makes its
first folder, it removes those of processes that no longer hold their locks.
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
"""The least age of an unlocked folder that is removed: a new one is locked after it is made."""


def folder(prefix: str = "") -> tempfile.TemporaryDirectory[str]:
    """A new folder, removed with the value or with the process."""
    return tempfile.TemporaryDirectory(prefix=prefix, dir=_of_process(os.getpid()))


@cache
def _of_process(pid: int) -> str:
    """The folder of this process; a fork has its own."""
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
    """Raises OSError if the folder is not one of these."""
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
