"""Cubins kept on disk, each with its source, so that a profiler can show it."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from gemmgen.base import caches, temporary
from gemmgen.base.once import made_once
from gemmgen.base.record import record
from gemmgen.gpu import compiler

_CUBIN, _SOURCE = "kernel.cubin", "kernel.cu"


@record
class Stored:
    """A cubin on disk, and its source."""

    cubin: Path
    source: Path


def stored(text: str, arch: str) -> Stored:
    """``text`` compiled for ``arch``: from the cache, or compiled and added to it.

    The key has all that can change the result: text, architecture, the compiler with its version
    and options.  Without a writable cache, a temporary folder of the process replaces it.
    """
    name = f"cubin-{caches.key(text, arch, compiler.identity())}"
    where = caches.folder() or Path(_temporary().name)
    found = Stored(where / name / _CUBIN, where / name / _SOURCE)
    with made_once(name):
        if caches.read(name) is not None:
            return found
        compiled = compiler.compile_text(text, arch, path=str(found.source), strict=False)
        files = {_CUBIN: compiled.cubin, _SOURCE: text.encode()}
        if caches.write(name, files) is not None:
            return found
        return _in_a_folder(Path(_temporary().name) / name, files)


def _in_a_folder(folder: Path, files: dict[str, bytes]) -> Stored:
    folder.mkdir(exist_ok=True)
    for file, data in files.items():
        (folder / file).write_bytes(data)
    return Stored(folder / _CUBIN, folder / _SOURCE)


@cache
def _temporary() -> TemporaryDirectory[str]:
    return temporary.folder()
