"""Excerpts of printed programs."""

from __future__ import annotations


def missing(excerpt: list[str], text: str) -> str | None:
    """The first line of ``excerpt`` that ``text`` lacks behind the ones before it, or None.

    A line counts whole but for its indentation; other lines may stand between.
    """
    there = iter(line.strip() for line in text.splitlines())
    for line in excerpt:
        wanted = line.strip()
        if wanted != "..." and wanted not in there:
            return wanted
    return None
