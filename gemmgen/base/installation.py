"""What the installed package is: a value that differs after any of its files changed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from gemmgen.base import caches


@cache
def state() -> str:
    """Of the names, sizes and times of modification of the package's modules and data, as the
    process first asks for it."""
    root = Path(__file__).parents[1]
    return caches.key(str(root), *sorted(_described(str(root))))


def _described(folder: str) -> Iterator[str]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_file():
                about = entry.stat()
                yield f"{entry.path} {about.st_size} {about.st_mtime_ns}"
            elif entry.name != "__pycache__":
                yield from _described(entry.path)


@cache
def sources() -> str:
    """Of the texts of the package's modules and data: equal for equal copies on two machines."""
    root = Path(__file__).parents[1]
    paths = sorted(path for path in root.rglob("*") if path.is_file() and _is_source(path, root))
    parts = (p for path in paths for p in (str(path.relative_to(root)), path.read_bytes()))
    return caches.key(*parts)


def _is_source(path: Path, root: Path) -> bool:
    """Not what Python compiled, nor the examples, which are elsewhere in a clone."""
    return {"__pycache__", "_examples"}.isdisjoint(path.relative_to(root).parts)
