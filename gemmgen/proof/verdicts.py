"""A cache of verdicts: equal inputs are proved once.

Only passes are kept.  The key has what was proved, the whole package's sources and the versions of
the tools; ``GEMMGEN_CACHE=0`` disables it, like every cache.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np

from gemmgen.base import caches

PACKAGE = Path(__file__).parents[1]
_SUFFIXES = {".py", ".cpp", ".cuh", ".h", ".j2", ".lark"}


def complaint_of(prove: Callable[[], str | None], layer: str, *about: object) -> str | None:
    """The result of ``prove()``, a sentence or None; None at once if it was None for ``about``
    before.

    The ``repr`` of ``about`` must include everything that ``prove`` depends on.
    """
    name = _name(layer, about)
    if caches.read(name) is not None:
        return None
    complaint = prove()
    if complaint is None:
        caches.write(name, {})
    return complaint


def keep(layer: str, *about: object) -> None:
    """Notes that there is nothing to complain about, for ``complaint_of``."""
    caches.write(_name(layer, about), {})


def _name(layer: str, about: tuple[object, ...]) -> str:
    return f"verdict-{caches.key(checker(), layer, *map(repr, about))}"


@cache
def checker() -> str:
    """The identity of the checker: this package's sources, Python, NumPy and the machine."""
    sources = sorted(path for path in PACKAGE.rglob("*") if path.suffix in _SUFFIXES)
    parts = (p for path in sources for p in (str(path.relative_to(PACKAGE)), path.read_bytes()))
    return caches.key(sys.version, np.__version__, platform.machine(), *parts)
