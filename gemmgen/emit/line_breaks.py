"""Line breaks: templates and expressions mark where a long line may be broken.

A mark is a character that no emitted text holds, as a soft hyphen is one between syllables:

    ``FIRST``  after the ``=`` of an assignment, used if what follows then takes one line
    ``SOFT``   within an expression or a list of arguments
    ``INDEX``  between the indices of an element, used if no ``SOFT`` fits
    ``LAST``   within arithmetic or a directive, used if no other fits
"""

from __future__ import annotations

import re

WIDTH = 100
"""Columns of a line."""

FIRST, SOFT, INDEX, LAST = "⏎", "↵", "¦", "·"
_MARKS = re.compile(f"[{FIRST}{SOFT}{INDEX}{LAST}]")
_RANKS = {FIRST: 0, SOFT: 0, INDEX: 1, LAST: 2}
_INDENT = 4


def plain(text: str) -> str:
    """``text`` on as few lines as it has: without its marks."""
    return _MARKS.sub("", text)


def laid_out(text: str) -> str:
    """``text`` in lines of at most ``WIDTH`` columns, as far as it has marks, and without them."""
    return "\n".join(_broken(line.rstrip()) for line in text.split("\n"))


def _broken(line: str, goes_on: bool = False) -> str:
    """A line and what goes on below it: further in than its first line, after another ``//`` if it
    is a comment, there only if its text is indented."""
    at = _break(line)
    if at is None:
        return plain(line)
    code = line.lstrip()
    indent = " " * (len(line) - len(code))
    further = "" if goes_on else " " * _INDENT
    if code.startswith("//"):
        inner = code[2 : len(code) - len(code[2:].lstrip())]
        further = "//" + inner + (further if len(inner) > 1 else "")
    below = indent + further
    rest = _broken(below + line[at + 1 :], goes_on=line[at] != FIRST)
    return f"{_broken(line[:at].rstrip(), goes_on)}\n{rest}"


def _break(line: str) -> int | None:
    """The mark where a line is to be broken: the last one that it has room for."""
    if len(plain(line)) <= WIDTH:
        return None
    if FIRST in line:
        indent = len(line) - len(line.lstrip()) + _INDENT
        if indent + len(plain(line.partition(FIRST)[2])) <= WIDTH:
            return line.index(FIRST)
    marks = list(_MARKS.finditer(line))
    fits = [mark for i, mark in enumerate(marks) if mark.start() - i <= WIDTH]
    best = min((_RANKS[mark[0]] for mark in fits), default=0)
    return max((mark.start() for mark in fits if _RANKS[mark[0]] == best), default=None)


def filled(texts: list[str], between: str, width: int) -> list[list[str]]:
    """``texts`` on as few lines as ``width`` allows, with ``between`` two of them."""
    lines: list[list[str]] = []
    for text in texts:
        if lines and len(plain(between.join((*lines[-1], text)))) <= width:
            lines[-1].append(text)
        else:
            lines.append([text])
    return lines


def directive(text: str) -> str:
    """A directive, which may be broken before a parenthesis, else after a comma."""
    return text.replace(" (", f" {SOFT}(").replace(", ", f", {LAST}")


def comment_lines(note: str, origins: tuple[str, ...]) -> list[str]:
    """A comment's line: ``note``, and the directives that it comes from; none without a note."""
    cited = f" ({'; '.join(origins)})" if origins else ""
    return [directive(f"{note}{cited}".replace("; ", f"; {SOFT}"))] if note else []
