"""``gemmgen fmt``: a schedule's own statements and comments, in the passes' order, aligned."""

from __future__ import annotations

import re
from dataclasses import replace

from gemmgen.base.errors import Mistakes
from gemmgen.base.source import Source
from gemmgen.schedule.formatting import aligned
from gemmgen.schedule.gemm_line import check_gemm
from gemmgen.schedule.grammar import parse
from gemmgen.schedule.model import DEFAULT_GEMM
from gemmgen.schedule.raw import Reader
from gemmgen.schedule.roles import letters, spelt
from gemmgen.schedule.spec import DirectiveSpec
from gemmgen.schedule.statements import Statement, split
from gemmgen.schedule.vocabulary import Vocabulary, check_word

_COMMENT = re.compile(r"#[^\n]*")
_BLANKS = re.compile(r"\s+")
_INSIDE = re.compile(r"(?<=[(\[{]) | (?=[)\]},])")
"""Blanks from a line end after an opening bracket, or before a closing one."""


def fmt(source: Source, vocabulary: Vocabulary) -> str:
    """The text in the order of the passes, one statement a line, aligned, without empty lines.

    Operands are written before arguments, and these in the order of the directive's specification.
    The user's words are otherwise unchanged.  Comments move with the statement below or before
    them; those at the file's head, separated from the first statement by an empty line, stay there,
    and those below the last statement stay below.  Formatting is idempotent.  Raises
    ``ScheduleError`` if a statement can't be read.
    """
    mistakes = Mistakes(source.cleaned())
    found = split(mistakes)
    for statement in found.statements:
        with mistakes.caught():
            check_word(statement, vocabulary)
            parse(statement, vocabulary.example(statement.word))
    mistakes.check()
    statements, lines = list(found.statements), list[str]()
    names = _names(found.statements, vocabulary.specs)
    order = {word: at for at, word in enumerate(vocabulary.statements)}
    if statements:
        head, own = _head(statements[0].above)
        lines += head
        statements[0] = replace(statements[0], above=own)
    for statement in sorted(statements, key=lambda s: order[s.word]):
        lines += [*statement.above, *_lines(statement, names.get(statement.word, ()))]
    return "".join(line + "\n" for line in (*lines, *found.below) if line)


def _head(above: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The comments over the first statement: the file's, and after an empty line its own."""
    parted = max((at + 1 for at, line in enumerate(above) if not line), default=0)
    return above[:parted], above[parted:]


def _names(
    statements: tuple[Statement, ...], specs: tuple[DirectiveSpec, ...]
) -> dict[str, tuple[str, ...]]:
    """The arguments of each directive in their order, in the letters of the ``gemm`` line; empty if
    that line is wrong."""
    gemm = DEFAULT_GEMM
    for statement in statements:
        if statement.word == "gemm":
            scope = check_gemm(Reader(statement).gemm(parse(statement)), specs, Mistakes())
            if not scope.sure:
                return {}
            gemm = scope.gemm
    known = letters(gemm)
    return {
        spec.name: tuple(spelt(argument.name, known) for argument in spec.arguments)
        for spec in specs
    }


def _ordered(word: str, words: str, names: tuple[str, ...]) -> str:
    """What follows a directive's ``word``: its operands, its arguments in the order of ``names``,
    then those that it does not take."""
    statement = Statement(word, f"{word} {words}", 0)
    raw = Reader(statement).directive(parse(statement))
    order = {name: at for at, name in enumerate(names)}
    arguments = sorted(raw.arguments, key=lambda a: order.get(a.name.text, len(names)))
    spans = [item.span for item in (*raw.operands, *arguments)]
    if spans == sorted(spans, key=lambda span: span.start):
        return words
    return " ".join(statement.text[span.start : span.end] for span in spans)


def _lines(statement: Statement, names: tuple[str, ...]) -> list[str]:
    """A statement in one line; all comments within a longer one but the last are moved above it.
    ``names`` are the arguments that a directive takes, in their order."""
    broken = "\n" in statement.rest
    words = _BLANKS.sub(" ", _COMMENT.sub("", statement.rest)).strip()
    words = _INSIDE.sub("", words) if broken else words
    line = aligned(statement.word, _ordered(statement.word, words, names) if names else words)
    if not statement.trailing:
        return [line]
    return [*statement.trailing[:-1], f"{line}  {statement.trailing[-1]}"]
