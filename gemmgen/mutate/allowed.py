"""Mutants known to be no mistakes: each with the reason why."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gemmgen.errors import UsageError
from gemmgen.mutate.mutants import Mutant


@dataclass(frozen=True)
class Allowed:
    """``old`` may become ``new`` in the kernels of these names (``*``: in all)."""

    names: tuple[str, ...]
    old: tuple[str, ...]
    new: tuple[str, ...]
    reason: str

    def covers(self, name: str, mutant: Mutant) -> bool:
        if self.names != ("*",) and name not in self.names:
            return False
        return mutant.difference() == (self.old, self.new)


def read_allowed(path: Path) -> tuple[Allowed, ...]:
    """The entries of a file, parted by empty lines; ``#`` begins a comment.

    An entry is a line of names, the lines that change (``- ``), what they become (``+ ``), and the
    argument why that is no mistake.
    """
    text = path.read_text(encoding="utf-8")
    lines = ["" if line.startswith("#") else line.rstrip() for line in text.splitlines()]
    entries = "\n".join(lines).split("\n\n")
    return tuple(_entry(entry.split("\n"), path) for entry in map(str.strip, entries) if entry)


def _entry(lines: list[str], path: Path) -> Allowed:
    old = tuple(line[2:].strip() for line in lines if line.startswith("- "))
    new = tuple(line[2:].strip() for line in lines if line.startswith("+"))
    reason = " ".join(line for line in lines[1:] if line[:1] not in ("-", "+"))
    if not old or not new or not reason:
        raise UsageError(f"{path}: an entry lacks its change or its argument: {lines[0]}")
    return Allowed(tuple(lines[0].replace(",", " ").split()), old, new, reason)
