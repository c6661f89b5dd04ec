"""Unified differences of two texts."""

from __future__ import annotations

import difflib


def unified(before: str, after: str, old: str, new: str) -> str:
    """Return the unified diff from ``before`` to ``after``; empty if they are equal.

    ``old`` and ``new`` name the texts in its first two lines.
    """
    if before == after:
        return ""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), old, new, lineterm="")
    difference = "".join(f"{line}\n" for line in lines)
    return difference or f"{old} and {new} differ in their line ends\n"
