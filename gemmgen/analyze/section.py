"""A table under a title, which any printer can lay out."""

from __future__ import annotations

from gemmgen.base.record import record


@record
class Section:
    """A table under a title; ``header`` may be empty.  ``notes`` are lines below it."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
