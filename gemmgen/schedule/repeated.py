"""The note of a statement that is given twice."""

from __future__ import annotations

from gemmgen.base.source import Source, Span, shown


def first_given(source: Source, span: Span, statement: Span | None = None) -> tuple[str, ...]:
    """The note of a repeated statement: the position of the first, and its text."""
    line, column = source.position(span.start)
    whole = statement or span
    text = shown(" ".join(source.text[whole.start : min(whole.end, whole.start + 200)].split()))
    return (f"first given on line {line}, column {column}: {text}",)
