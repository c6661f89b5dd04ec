"""A position in a line of IR text, and errors at it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NoReturn, TypeVar

T = TypeVar("T")

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")
_SHOWN = 24


class IRTextError(ValueError):
    """Text that is not IR: a line, a column, and what was expected there."""

    def __init__(self, line: int, column: int, message: str):
        super().__init__(f"line {line}, column {column}: {message}")
        self.line, self.column = line, column


class Cursor:
    """Reads one line of the text from left to right; spaces separate, and mean nothing else."""

    def __init__(self, text: str, line: int, at: int = 0):
        self.text, self.line, self.at = text, line, at
        self._skip()

    def _skip(self) -> None:
        while self.text.startswith(" ", self.at):
            self.at += 1

    @property
    def is_done(self) -> bool:
        return self.at == len(self.text)

    def match(self, pattern: re.Pattern[str]) -> str | None:
        """The text that ``pattern`` matches here, which is consumed; None without a match."""
        found = pattern.match(self.text, self.at)
        if found is None:
            return None
        self.at = found.end()
        self._skip()
        return found[0]

    def has(self, literal: str) -> bool:
        """Whether ``literal`` is next; it is then read."""
        if not self.text.startswith(literal, self.at):
            return False
        self.at += len(literal)
        self._skip()
        return True

    def expect(self, literal: str) -> None:
        if not self.has(literal):
            self.fail(f"expected `{literal}`")

    def items(self, read: Callable[[Cursor], T], end: str) -> tuple[T, ...]:
        """What ``read`` reads, with commas between, up to the closing bracket ``end``."""
        found: list[T] = []
        while not self.has(end):
            if found:
                self.expect(",")
            found.append(read(self))
        return tuple(found)

    def name(self, what: str = "a name") -> str:
        return self.match(NAME) or self.fail(f"expected {what}")

    def rest(self) -> str:
        """Everything up to the end of the line."""
        text, self.at = self.text[self.at :], len(self.text)
        return text

    def fail(self, message: str, at: int | None = None) -> NoReturn:
        """What was expected at ``at``, or here, and what is there instead."""
        at = self.at if at is None else at
        there = self.text[at:].rstrip()
        shown = there if len(there) <= _SHOWN else there[:_SHOWN] + ".."
        found = f", found `{shown}`" if there else " before the end of the line"
        raise IRTextError(self.line, at + 1, message + found)
