"""Unified differences, colored on a terminal."""

from __future__ import annotations

import difflib

import click

_COLORS = {"+": "green", "-": "red", "@": "cyan"}


def unified(before: str, after: str, old: str, new: str) -> str:
    """The unified diff from ``before`` to ``after``; empty if they are equal."""
    if before == after:
        return ""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), old, new, lineterm="")
    difference = "".join(_colored(line) + "\n" for line in lines)
    return difference or f"{old} and {new} differ in their line ends\n"


def _colored(line: str) -> str:
    """``click.echo`` drops the color if the output is no terminal."""
    if line.startswith(("---", "+++")):
        return click.style(line, bold=True)
    colour = _COLORS.get(line[:1])
    return click.style(line, fg=colour) if colour else line
