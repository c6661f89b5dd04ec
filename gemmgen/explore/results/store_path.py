"""The file of this user's measured results."""

from __future__ import annotations

from pathlib import Path

from gemmgen.base import caches

FILE = f"{caches.KEPT}.sqlite3"


def path() -> Path | None:
    """The file of this user's results; it need not exist.  None if nothing can be kept."""
    folder = caches.folder()
    return folder / FILE if folder else None
