"""Unified differences, coloured on a terminal."""

from __future__ import annotations

import difflib

import click

_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


def unified(before: str, after: str, old: str, new: str) -> str:
    """What turns ``before`` into ``after``; empty where they are the same."""
    if before == after:
        return ""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), old, new, lineterm="")
    told = "".join(_coloured(line) + "\n" for line in lines)
    return told or f"{old} and {new} differ in their line ends\n"


def _coloured(line: str) -> str:
    """The colour is dropped by ``click.echo`` where there is no terminal."""
    if line.startswith(("---", "+++")):
        return click.style(line, bold=True)
    colour = _COLOURS.get(line[:1])
    return click.style(line, fg=colour) if colour else line
