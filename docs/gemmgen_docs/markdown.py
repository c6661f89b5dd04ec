"""Markdown as text: fences, tables, folded blocks."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from difflib import unified_diff


def fence(text: str, language: str = "text", title: str = "") -> str:
    """A block of code."""
    head = f'```{language} title="{title}"' if title else f"```{language}"
    return f"{head}\n{text.rstrip()}\n```\n"


def folded(title: str, body: str) -> str:
    """A block that opens on demand."""
    inner = "".join(f"    {line}".rstrip() + "\n" for line in body.splitlines())
    return f'??? note "{title}"\n\n{inner}\n'


def table(header: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[int] = ()) -> str:
    """A table; columns in ``right`` hold numbers."""
    rule = ["---:" if at in right else "---" for at in range(len(header))]
    lines = [" | ".join(cells) for cells in (header, rule, *rows)]
    return "".join(f"| {line} |\n" for line in lines)


def code(text: str) -> str:
    """``text`` as code within a line or a table's cell."""
    return f"`{text}`" if text else ""


def cell(text: str) -> str:
    """Text for a table's cell, with bars and tags escaped."""
    return " ".join(text.replace("|", "&#124;").replace("<", "&lt;").split())


@functools.cache
def difference(before: str, after: str, context: int) -> str:
    """The diff from ``before`` to ``after``, without the file names."""
    lines = unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=context)
    kept = [line for line in lines if not line.startswith(("---", "+++"))]
    if context > len(before.splitlines()):
        kept = [line for line in kept if not line.startswith("@@")]
    return fence("\n".join(kept), "diff")
