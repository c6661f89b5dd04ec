"""Excerpts of printed programs."""

from __future__ import annotations


def missing(excerpt: list[str], text: str) -> str | None:
    """The first line of ``excerpt`` that ``text`` lacks after the ones before it, or None.

    Lines are compared without their indentation; other lines may be between them.
    """
    there = iter(line.strip() for line in text.splitlines())
    for line in excerpt:
        wanted = line.strip()
        if wanted != "..." and wanted not in there:
            return wanted
    return None
