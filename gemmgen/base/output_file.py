"""A file that is written: whole or not at all, and its name as messages quote it."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

from gemmgen.base.errors import UsageError
from gemmgen.base.source import shown


def shown_path(path: str) -> str:
    """A path as messages quote it, without control characters."""
    text = path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return text if text.isprintable() else shown(text)


def writable(path: str, *inputs: str) -> Path:
    """The regular file that ``path`` is or will be; raises ``UsageError`` if it can't be."""
    name = shown_path(path)
    try:
        target = Path(path).resolve()
        if target.is_symlink():  # a cycle of links: Python 3.13 returns one, others raise
            raise UsageError(f"{name} can't be written: it is a link that leads to itself")
        if target.is_dir() or path.endswith("/"):
            raise UsageError(f"{name} is a folder; name a file in it")
        if Path(path).is_symlink() and target.parent != Path(path).parent.resolve():
            raise UsageError(f"{name} is a link out of its folder; name {shown_path(str(target))}")
        if not target.parent.is_dir():
            raise UsageError(f"{name} can't be written: there is no folder {target.parent}")
        if target.exists() and not stat.S_ISREG(target.stat().st_mode):
            raise UsageError(f"{name} is not a regular file; leave -o out for standard output")
        if target.exists() and not (target.stat().st_mode & 0o222 and os.access(target, os.W_OK)):
            raise UsageError(f"{name} can't be written: it is read-only")
        for other in filter(os.path.exists, inputs):
            if other != "-" and target.exists() and target.samefile(other):
                raise UsageError(f"{name} is the schedule itself; choose another output")
    except (OSError, ValueError, RuntimeError) as wrong:
        raise UsageError(f"{name} can't be written: {_reason(wrong)}") from None
    return target


def write_file(path: str, data: str | bytes, *inputs: str) -> None:
    """Writes all of ``data`` or nothing; ``inputs`` are files that it must not replace."""
    target = writable(path, *inputs)
    try:
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=".gemmgen-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data.encode() if isinstance(data, str) else data)
            os.chmod(temporary, _mode(target))
            os.replace(temporary, target)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as wrong:
        raise UsageError(f"{shown_path(path)} can't be written: {_reason(wrong)}") from None


def _mode(target: Path) -> int:
    """The permissions of the file that is replaced, else those of any new file."""
    if target.exists():
        return stat.S_IMODE(target.stat().st_mode)
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _reason(wrong: Exception) -> str:
    reason = wrong.strerror if isinstance(wrong, OSError) else None
    return reason or str(wrong)
