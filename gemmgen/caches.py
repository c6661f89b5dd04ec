"""Where gemmgen keeps what each process would work out anew: parser tables, compiled templates,
the runner of kernels."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path


def place() -> Path:
    """``$XDG_CACHE_HOME/gemmgen``, by default ``~/.cache/gemmgen``; it need not exist.

    Raises ``RuntimeError`` where the user has no home.
    """
    given = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(given) if os.path.isabs(given) else Path.home() / ".cache") / "gemmgen"


@cache
def folder() -> Path | None:
    """``place``, the user's own, made if need be.

    None where it can't be written, or where others could, or where that can't be told: what lies
    there is loaded as code is.
    """
    if not hasattr(os, "getuid"):
        return None
    try:
        found = place()
        found.mkdir(mode=0o700, parents=True, exist_ok=True)
        about = found.lstat()
    except (OSError, RuntimeError):  # the latter where there is no home
        return None
    own = about.st_uid == os.getuid() and not about.st_mode & 0o022
    return found if own and found.is_dir() and os.access(found, os.W_OK) else None
