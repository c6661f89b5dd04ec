"""A compiler that a test has changed compiles afresh: each patch of it empties its caches."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

import pytest

CACHES = (("gemmgen.language", "_parsed"), ("gemmgen.pipeline", "_compiled"))
ABOVE = (
    *("pytest_plugin", "cli", "functions", "torch", "api", "fuzz", "explore", "draw", "analyze"),
    *("proof", "sim", "interpreter", "gpu"),
)
"""Packages that the compiler can't import (pyproject.toml's layers): it doesn't see their names."""


def forget() -> None:
    """Empty the compiler's caches, as far as it is imported."""
    for module, name in CACHES:
        if module in sys.modules:
            getattr(sys.modules[module], name).cache_clear()


def is_seen(target: object) -> bool:
    """Whether the compiler may see a change of ``target``, an object or a dotted name."""
    if target is os.environ:
        return False
    name = target if isinstance(target, str) else getattr(target, "__module__", None)
    name = name or getattr(target, "__name__", "")
    return not str(name).startswith(tuple(f"gemmgen.{package}." for package in ABOVE))


def forget_with_each_patch() -> None:
    """From here on ``MonkeyPatch`` forgets when it changes what the compiler sees, and when it
    changes it back."""
    kind: Any = pytest.MonkeyPatch
    if getattr(kind.undo, "__wrapped__", None) is None:
        for name in ("setattr", "delattr", "setitem", "delitem"):
            setattr(kind, name, _forgetting(getattr(kind, name)))
        kind.undo = _forgetting_seen(kind.undo)


def _forgetting(change: Callable[..., None]) -> Callable[..., None]:
    @wraps(change)
    def changed(patch: Any, target: object, *given: Any, **named: Any) -> None:
        change(patch, target, *given, **named)
        if is_seen(target):
            patch.gemmgen_seen = True
            forget()

    return changed


def _forgetting_seen(undo: Callable[..., None]) -> Callable[..., None]:
    @wraps(undo)
    def undone(patch: Any) -> None:
        undo(patch)
        if getattr(patch, "gemmgen_seen", False):
            forget()

    return undone
