"""Splits a schedule's text into logical statements, each with its comments."""

from __future__ import annotations

import re
from unicodedata import normalize

from gemmgen.base.errors import Mistakes, Refusal
from gemmgen.base.record import record
from gemmgen.base.source import Source, Span, shown

MOST_BYTES = 256 * 1024
MOST_STATEMENTS = 1000
MOST_CHARACTERS = 64 * 1024
"""The most characters of one statement."""
DEEPEST = 64
NUL = "\0"

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_PIECE = re.compile(r"[()\[\]{}#]")
_CLOSES = {")": "(", "]": "[", "}": "{"}
_CLOSED_BY = {opening: closing for closing, opening in _CLOSES.items()}
_NEW = re.compile(r"[ \t]*(?!not\b)[A-Za-z_]\w*[ \t]+(?!(?:and|or)\b)[A-Za-z_]")
"""Bracketed text has no two consecutive names, so such a line begins a statement."""


@record
class Statement:
    """One logical statement: ``source.text[start:end]``, without the comments around it.

    ``word`` is its first name ("" if it begins with none).  ``above`` are the comment lines over
    it, with "" for the empty lines between and below them; ``trailing`` those at its lines' ends.
    """

    word: str
    text: str
    start: int
    above: tuple[str, ...] = ()
    trailing: tuple[str, ...] = ()

    @property
    def span(self) -> Span:
        return Span(self.start, self.start + len(self.text))

    @property
    def word_span(self) -> Span:
        return Span(self.start, self.start + max(1, len(self.word)))

    @property
    def rest(self) -> str:
        """What follows the first word."""
        return self.text[len(self.word) :]


@record
class Statements:
    """A file's statements in its order, and the comments below the last one."""

    statements: tuple[Statement, ...]
    below: tuple[str, ...]


def split(mistakes: Mistakes) -> Statements:
    """The statements of the cleaned source of ``mistakes``; an open bracket continues a line."""
    with mistakes.caught():
        _check_text(mistakes.source)
        return _Splitter(mistakes).run()
    return Statements((), ())


def _check_text(source: Source) -> None:
    if len(source.text) > MOST_BYTES:
        message = f"the file has {len(source.text)} characters, at most {MOST_BYTES} are read"
        raise _too_long(message, None)
    control = _CONTROL.search(source.text)
    if control:
        name = "NUL" if control.group() == NUL else f"U+{ord(control.group()):04X}"
        raise Refusal(
            f"the control character {name} is not allowed",
            at=Span(control.start(), control.end()),
            hint=(
                "a schedule is plain UTF-8 text; is this the right file, and not UTF-16?"
                if control.group() == NUL
                else "delete it; a schedule is plain text"
            ),
        )


class _Splitter:
    """Reads line by line; its state is the statement that has begun and the comments before it."""

    def __init__(self, mistakes: Mistakes):
        self.source, self.mistakes = mistakes.source, mistakes
        self.found: list[Statement] = []
        self.above: list[str] = []
        self.open: list[tuple[str, int]] = []
        self.start = self.end = -1
        self.trailing: list[str] = []

    def run(self) -> Statements:
        offset = 0
        for line in self.source.text.split("\n"):
            if self.open and _NEW.match(line):
                self._unclosed()
            self._line(line, offset)
            if self.start >= 0 and not self.open:
                self._finish()
            offset += len(line) + 1
        if self.open:
            self._unclosed()
        return Statements(tuple(self.found), tuple(self.above))

    def _line(self, line: str, offset: int) -> None:
        code = self._brackets(line, offset)
        comment = line[len(code) :].strip()
        bare = code.strip(" \t")
        if bare:
            self.start = offset + code.index(bare) if self.start < 0 else self.start
            self.end = offset + code.index(bare) + len(bare)
        if self.start >= 0:
            self.trailing += [comment] if comment else []
        elif comment:
            self.above.append(comment)
        elif self.above and self.above[-1]:
            self.above.append("")

    def _brackets(self, line: str, offset: int) -> str:
        """Tracks the line's brackets; returns the line up to its comment."""
        for piece in _PIECE.finditer(line):
            mark, at = piece.group(), piece.start()
            if mark == "#":
                return line[:at]
            if mark not in _CLOSES:
                self.open.append((mark, offset + at))
                if len(self.open) > DEEPEST:
                    self._too_deep(offset + at)
            elif self.open and self.open[-1][0] == _CLOSES[mark]:
                self.open.pop()
        return line

    def _too_deep(self, at: int) -> None:
        raise Refusal(
            f"brackets are nested more than {DEEPEST} deep",
            at=Span(at, at + 1),
            hint="take a part of the expression out, or drop brackets that change nothing",
        )

    def _unclosed(self) -> None:
        mark, at = self.open[0]
        self.mistakes.append(
            Refusal(
                f"`{mark}` is never closed",
                at=Span(at, at + 1),
                hint=f"close it with `{_CLOSED_BY[mark]}`",
            ).mistake
        )
        self.open.clear()
        self.start, self.above, self.trailing = -1, [], []

    def _finish(self) -> None:
        text = self.source.text[self.start : self.end]
        name = _WORD.match(text)
        word = name.group() if name else ""
        above, trailing = tuple(self.above), tuple(self.trailing)
        self.found.append(Statement(word, text, self.start, above, trailing))
        if len(text) > MOST_CHARACTERS:
            raise _too_long(
                f"the statement has {len(text):,} characters, at most {MOST_CHARACTERS:,} are read",
                self.found[-1].word_span,
            )
        if len(self.found) > MOST_STATEMENTS:
            message = f"the file has more than {MOST_STATEMENTS} statements"
            raise _too_long(message, self.found[-1].word_span)
        self.start, self.above, self.trailing = -1, [], []


def _too_long(message: str, at: Span | None) -> Refusal:
    return Refusal(message, at=at, hint="a schedule is about ten lines; is this the right file?")


COMMENT = "a comment begins with `#`: `# a comment`"


def begins_comment(text: str) -> bool:
    """Whether ``text`` begins a comment in other languages."""
    return text.startswith(("//", "/*", "--", ";;", "<!--"))


def no_word(statement: Statement) -> Refusal:
    """The refusal of a statement that begins with no name."""
    first = next(iter(statement.text.split(maxsplit=1)), "")  # "" for spaces of other alphabets
    meant = _WORD.match(normalize("NFKC", first))
    hint = "one statement a line, such as `tile m=128 n=128 k=8`"
    if begins_comment(statement.text):
        hint = COMMENT
    return Refusal(
        f"a statement begins with a word, not with `{shown(statement.text[:1])}`",
        at=statement.word_span,
        hint=f"write `{meant.group()}` in plain letters" if meant else hint,
    )
