"""The cache on disk, in ``$XDG_CACHE_HOME/gemmgen``.

An entry is a folder of files and a digest of them all, created by one atomic rename.  It is read
only if the cache, the entry and each of its files belong to the user, no one else may write them,
none is a link, and the digest matches; else it counts as absent and is replaced.
``GEMMGEN_CACHE=0`` disables the cache.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path

MOST_BYTES = 512 << 20
"""Above this size entries are removed, the least recently read first."""
_LOOK_BYTES = 64 << 20
"""After writing this many bytes a process checks the size again."""

KEPT = "results"
"""Files whose names begin so are never evicted: their content can't be made again."""

_DIGEST = "sha256"
_SWITCH = "GEMMGEN_CACHE"
_HOUR = 3600
_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def location() -> Path:
    """``$XDG_CACHE_HOME/gemmgen``, by default ``~/.cache/gemmgen``; it need not exist.

    Raises ``RuntimeError`` if the user has no home.
    """
    given = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(given) if os.path.isabs(given) else Path.home() / ".cache") / "gemmgen"


def enabled() -> bool:
    """Whether the user allows a cache."""
    return os.environ.get(_SWITCH) != "0"


def folder() -> Path | None:
    """``location``, created if need be.

    None if it can't be written, or if others can write it or that isn't known: its files are
    executed.
    """
    if not hasattr(os, "getuid") or not enabled():
        return None
    try:
        return _checked(location())
    except RuntimeError:  # there is no home
        return None


@cache
def _checked(found: Path) -> Path | None:
    try:
        found.mkdir(mode=0o700, parents=True, exist_ok=True)
        about = found.lstat()
    except OSError:
        return None
    return found if _is_own(about, stat.S_ISDIR) and os.access(found, os.W_OK) else None


def key(*parts: str | bytes) -> str:
    """A name for what ``parts`` determine, equal for equal parts alone."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()[:40]


def read(name: str) -> dict[str, bytes] | None:
    """The files of the entry ``name`` by their names; None if it may not be used."""
    where = folder()
    if where is None:
        return None
    try:
        files = _files(where / name)
    except OSError:
        return None
    if files.pop(_DIGEST, None) != _digest(name, files):
        return None
    with contextlib.suppress(OSError):
        os.utime(where / name)
    return files


def write(name: str, files: Mapping[str, bytes], *, executable: str = "") -> Path | None:
    """Keeps ``files`` under ``name``, unless a usable entry exists; returns the entry's folder, or
    None if nothing can be kept.  The user may execute the file ``executable``."""
    where = folder()
    if where is None:
        return None
    try:
        _tidy(where, sum(map(len, files.values())))
        draft = Path(tempfile.mkdtemp(prefix=f".{os.getpid()}-", dir=where))
    except OSError:
        return None
    try:
        for file, data in (*files.items(), (_DIGEST, _digest(name, files))):
            mode = 0o700 if file == executable else 0o600
            handle = os.open(draft / file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
            with os.fdopen(handle, "wb") as out:
                out.write(data)
        return _put(draft, where / name)
    except OSError:
        return None
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _put(draft: Path, final: Path) -> Path | None:
    """Renames ``draft`` to ``final``; a usable entry there is kept, anything else is replaced."""
    with contextlib.suppress(OSError):
        draft.rename(final)
        return final
    if read(final.name) is not None:  # another process was first
        return final
    damaged = draft.with_name(f"{draft.name}.old")
    with contextlib.suppress(OSError):
        final.rename(damaged)
        draft.rename(final)
    _remove(damaged)
    return final if final.is_dir() else None


def _files(entry: Path) -> dict[str, bytes]:
    """All files of an entry.  Raises OSError if one may not be used."""
    if not _is_own(entry.lstat(), stat.S_ISDIR):
        raise PermissionError(entry)
    found: dict[str, bytes] = {}
    for name in os.listdir(entry):
        handle = os.open(entry / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            if not _is_own(os.fstat(handle), stat.S_ISREG):
                raise PermissionError(entry / name)
            found[name] = file.read()
    return found


def _is_own(about: os.stat_result, kind: Callable[[int], bool]) -> bool:
    return kind(about.st_mode) and about.st_uid == os.getuid() and not about.st_mode & _OTHERS


def _digest(name: str, files: Mapping[str, bytes]) -> bytes:
    parts = (part for file in sorted(files) for part in (file.encode(), files[file]))
    return key(name, *parts).encode()


class _Written:
    """Bytes written since this process last tidied."""

    count = 0


def _tidy(where: Path, size: int) -> None:
    """Once an hour and every ``_LOOK_BYTES``: evicts entries, and removes abandoned drafts."""
    stamp, now = where / ".tidied", time.time()
    _Written.count += size
    with contextlib.suppress(OSError):
        if now - stamp.lstat().st_mtime < _HOUR and _Written.count < _LOOK_BYTES:
            return
    stamp.touch()
    _Written.count = 0
    entries = sorted(_entries(where))
    total = sum(size for _, size, _ in entries)
    for read_at, size, path in entries:
        abandoned = path.name.startswith(".") and now - read_at > _HOUR
        if total > MOST_BYTES or abandoned:
            _remove(path)
            total -= size


def _entries(where: Path) -> Iterator[tuple[float, int, Path]]:
    """Each entry's time of the last read, its bytes and its path."""
    for entry in os.scandir(where):
        if entry.name.startswith(KEPT):
            continue
        with contextlib.suppress(OSError):
            about = entry.stat(follow_symlinks=False)
            files = os.scandir(entry.path) if entry.is_dir(follow_symlinks=False) else ()
            size = about.st_size + sum(f.stat(follow_symlinks=False).st_size for f in files)
            yield about.st_mtime, size, Path(entry.path)


def _remove(path: Path) -> None:
    shutil.rmtree(path, ignore_errors=True)
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)
