"""Whether a tool failed for want of room or rights on this machine: then nothing was checked, and
the text that it was given is not to blame."""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from errno import EACCES, EDQUOT, EIO, EMFILE, ENOMEM, ENOSPC, EROFS
from pathlib import Path

from gemmgen.base.errors import CannotCheck

LEAST_FREE = 1 << 18
"""Bytes of a file system below which a failure is put down to it, whatever the tool says."""
_SAID = tuple(map(os.strerror, (ENOSPC, EDQUOT, EROFS, EACCES, EMFILE, EIO, ENOMEM)))


@contextmanager
def cannot_check(what: str) -> Generator[None]:
    """Raises ``CannotCheck`` for an error of the operating system in the context."""
    try:
        yield
    except OSError as wrong:
        raise CannotCheck(f"{what}: {wrong}") from None


def in_english() -> Mapping[str, str]:
    """The environment in which tools say what ``shortage`` understands."""
    return {**os.environ, "LC_ALL": "C"}


def shortage(log: str, folder: Path) -> str | None:
    """What the machine lacked when a tool that works in ``folder`` failed with ``log``; None if it
    lacked nothing."""
    for line in log.splitlines():
        if any(said in line for said in _SAID):
            return line.strip()
    try:
        free = shutil.disk_usage(folder).free
    except OSError as wrong:
        return str(wrong)
    return f"{folder} has {free:,} bytes left" if free < LEAST_FREE else None
