"""Mutants known to be equivalent, each with the reason."""

from __future__ import annotations

import re
from pathlib import Path

from gemmgen.base.errors import UsageError
from gemmgen.base.record import record
from gemmgen.sim.citations import blame

from .mutants import Mutant

_HEAD = re.compile(r"([*\w/, ]+?)(?: \((.+)\))?$")


@record
class Allowed:
    """``old`` may become ``new`` in the kernels of these names (``*``: in all), where ``context``
    follows, if it is given, and the code comes from ``directive``, if that is."""

    names: tuple[str, ...]
    directive: str | None
    old: tuple[str, ...]
    new: tuple[str, ...]
    context: tuple[str, ...]
    reason: str

    def covers(self, name: str, mutant: Mutant) -> bool:
        if self.names != ("*",) and name not in self.names:
            return False
        if self.directive is not None and blame(mutant.original, mutant.line) != self.directive:
            return False
        old, new = mutant.difference()
        below = mutant.original.split("\n")[mutant.line :][: len(self.context)]
        context = tuple(line.strip() for line in below)
        return _match(self.old, old) and _match(self.new, new) and _match(self.context, context)


def _match(patterns: tuple[str, ...], lines: tuple[str, ...]) -> bool:
    if len(patterns) != len(lines):
        return False
    return all(
        re.fullmatch(re.escape(pattern).replace(r"\.\.\.", ".*"), line)
        for pattern, line in zip(patterns, lines, strict=True)
    )


def read_allowed(path: Path) -> tuple[Allowed, ...]:
    """The entries of a file, separated by empty lines; ``#`` begins a comment.

    An entry is a line of names, with the citation of its code's comment in brackets if that
    matters; the lines that change (``- ``), what they become (``+ ``) and what follows (two
    blanks), with ``...`` for anything; and the argument why that is not a mistake.
    """
    text = path.read_text(encoding="utf-8")
    lines = ["" if line.startswith("#") else line.rstrip() for line in text.splitlines()]
    entries = "\n".join(lines).split("\n\n")
    return tuple(_entry(entry.split("\n"), path) for entry in map(str.strip, entries) if entry)


def _entry(lines: list[str], path: Path) -> Allowed:
    head = _HEAD.fullmatch(lines[0])
    marked = {mark: tuple(x[2:].strip() for x in lines if x.startswith(mark)) for mark in "-+ "}
    reason = " ".join(line for line in lines[1:] if line[:1] not in marked)
    if head is None or not marked["-"] or not marked["+"] or not reason:
        raise UsageError(f"{path}: an entry lacks its change or its argument: {lines[0]}")
    names = tuple(head[1].replace(",", " ").split())
    return Allowed(names, head[2], marked["-"], marked["+"], marked[" "], reason)
