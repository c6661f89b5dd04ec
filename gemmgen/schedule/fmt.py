"""``gemmgen fmt``: a schedule's own statements and comments, in ladder order and aligned."""

from __future__ import annotations

import re
from dataclasses import replace

from gemmgen.errors import Mistakes, ScheduleError
from gemmgen.passes.specs import SPECS
from gemmgen.schedule.contents import check_word
from gemmgen.schedule.grammar import parse
from gemmgen.schedule.statements import Statement, split
from gemmgen.schedule.text import aligned
from gemmgen.schedule.words import EPILOGUE, HEADS
from gemmgen.source import Source

_NAMES = tuple(spec.name for spec in SPECS)
_ORDER = {word: place for place, word in enumerate((*HEADS, *_NAMES, EPILOGUE))}
_COMMENT = re.compile(r"#[^\n]*")
_BLANKS = re.compile(r"\s+")
_INSIDE = re.compile(r"(?<=[(\[{]) | (?=[)\]},])")
"""Blanks that a line end left behind an opening bracket, or before a closing one."""


def fmt_source(source: Source) -> str:
    """The text in ladder order, one statement a line, aligned, without empty lines.

    The user's words stay as they are.  Comments travel with the statement that they stand above or
    beside; those at the file's head, parted from the first statement by an empty line, stay there,
    and those below the last statement stay below.  Formatting the result changes nothing.  Raises
    ``ScheduleError`` where a statement can't be read.
    """
    source = source.cleaned()
    mistakes = Mistakes(source)
    found = split(source, mistakes)
    for statement in found.statements:
        with mistakes.caught():
            check_word(statement, _NAMES)
            parse(statement)
    if mistakes:
        raise ScheduleError(source, tuple(mistakes))
    statements, lines = list(found.statements), list[str]()
    if statements:
        head, own = _head(statements[0].above)
        lines += head
        statements[0] = replace(statements[0], above=own)
    for statement in sorted(statements, key=lambda s: _ORDER[s.word]):
        lines += [*statement.above, *_lines(statement)]
    return "".join(line + "\n" for line in (*lines, *found.below) if line)


def _head(above: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The comments over the first statement: the file's, and behind an empty line its own."""
    parted = max((place + 1 for place, line in enumerate(above) if not line), default=0)
    return above[:parted], above[parted:]


def _lines(statement: Statement) -> list[str]:
    """A statement in one line; of the comments within a longer one, all but the last go above."""
    broken = "\n" in statement.rest
    words = _BLANKS.sub(" ", _COMMENT.sub("", statement.rest)).strip()
    line = aligned(statement.word, _INSIDE.sub("", words) if broken else words)
    if not statement.beside:
        return [line]
    return [*statement.beside[:-1], f"{line}  {statement.beside[-1]}"]
