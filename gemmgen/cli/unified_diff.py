"""Unified differences, colored on a terminal."""

from __future__ import annotations

import click

from gemmgen.base import text_diff

_COLORS = {"+": "green", "-": "red", "@": "cyan"}


def unified(before: str, after: str, old: str, new: str) -> str:
    """The unified diff from ``before`` to ``after``; empty if they are equal."""
    difference = text_diff.unified(before, after, old, new)
    return "".join(_colored(line) + "\n" for line in difference.split("\n")[:-1])


def _colored(line: str) -> str:
    """``click.echo`` drops the color if the output is not a terminal."""
    if line.startswith(("---", "+++")):
        return click.style(line, bold=True)
    colour = _COLORS.get(line[:1])
    return click.style(line, fg=colour) if colour else line
