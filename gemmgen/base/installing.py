"""How to install what an optional part of gemmgen needs: one wording for all messages."""

from __future__ import annotations


def install(*extras: str) -> str:
    """The command that installs ``extras``; gemmgen is installed from a clone, not from PyPI."""
    return f"pip install '.[{','.join(extras)}]' in a clone of gemmgen"
