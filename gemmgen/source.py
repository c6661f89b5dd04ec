"""A schedule's text, and places in it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Span:
    """Characters ``start`` to ``end`` (exclusive) of a source text.  Serves errors alone."""

    start: int
    end: int


@dataclass(frozen=True)
class Source:
    """A text and the name under which its errors are reported."""

    text: str
    name: str = "<schedule>"

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of ``offset``, both counted from 1."""
        line = self.text.count("\n", 0, offset) + 1
        return line, offset - (self.text.rfind("\n", 0, offset) + 1) + 1

    def line(self, number: int) -> str:
        """The text of line ``number``, counted from 1, without its line end."""
        return self.text.split("\n")[number - 1]

    def excerpt(self, span: Span) -> str:
        """The line of ``span`` with carets under it; a span over several lines is cut at the first."""
        line, column = self.position(span.start)
        text = self.line(line)
        width = max(1, min(span.end - span.start, len(text) - column + 1))
        gutter = f"{line:>5} | "
        pad = "".join("\t" if c == "\t" else " " for c in text[: column - 1])
        return f"{gutter}{text}\n{' ' * (len(gutter) - 2)}| {pad}{'^' * width}"
