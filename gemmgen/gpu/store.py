"""Cubins kept on disk, each beside the source it was made from, so that a profiler can show it."""

from __future__ import annotations

import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from gemmgen import caches
from gemmgen.gpu import compiler


@dataclass(frozen=True)
class Stored:
    """A cubin on disk, and its source."""

    cubin: Path
    source: Path


def stored(text: str, arch: str) -> Stored:
    """``text`` compiled for ``arch``: from the cache, or compiled and put there.

    The key holds all that can change the result: text, architecture, the compiler with
    its version and options.  A cubin that doesn't match the digest beside it is made again.  Where
    the cache can't be written, a temporary folder takes its place.
    """
    about = f"{arch}\n{compiler.identity()}\n{text}"
    key = hashlib.sha256(about.encode()).hexdigest()
    where = _writable()
    found = Stored(where / f"{key}.cubin", where / f"{key}.cu")
    digest = where / f"{key}.sha256"
    if _holds(found, digest, text):
        return found
    _write(found.source, text.encode())
    compiled = compiler.compile_text(text, arch, path=str(found.source), strict=False)
    _write(found.cubin, compiled.cubin)
    _write(digest, _digest(compiled.cubin).encode())
    return found


def _holds(found: Stored, digest: Path, text: str) -> bool:
    try:
        same = _digest(found.cubin.read_bytes()) == digest.read_text()
        return same and found.source.read_text() == text
    except (OSError, UnicodeDecodeError):
        return False


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _writable() -> Path:
    try:
        wanted = caches.place()
        wanted.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=wanted):
            return wanted
    except (OSError, RuntimeError):  # the latter where there is no home
        return Path(tempfile.mkdtemp(prefix="gemmgen-"))


def _write(path: Path, data: bytes) -> None:
    """Writes all of ``data`` or nothing: readers never see half a file."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
