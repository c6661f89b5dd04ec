"""The contents of a file: its statements by form, each parsed separately."""

from __future__ import annotations

from dataclasses import dataclass, field

from gemmgen.base.errors import Mistake, Mistakes
from gemmgen.base.source import Span
from gemmgen.schedule.epilogue_expressions import Parsed, read_expression
from gemmgen.schedule.grammar import parse
from gemmgen.schedule.raw import (
    RawAssume,
    RawDirective,
    RawGemm,
    RawRequire,
    RawSameBits,
    Reader,
    Word,
)
from gemmgen.schedule.sets import Let
from gemmgen.schedule.statements import Statement, split
from gemmgen.schedule.vocabulary import Vocabulary, check_word
from gemmgen.schedule.words import SAME_BITS

Gemms = list[tuple[RawGemm, Span]]
Names = list[tuple[Word, Span]]


@dataclass
class Contents:
    """The statements of a file by form, in its order.

    ``broken`` are the first words of those that can't be read.
    """

    gemms: Gemms = field(default_factory=Gemms)
    kernels: Names = field(default_factory=Names)
    targets: Names = field(default_factory=Names)
    dtypes: list[RawDirective] = field(default_factory=list[RawDirective])
    assumes: list[RawAssume] = field(default_factory=list[RawAssume])
    requires: list[RawRequire] = field(default_factory=list[RawRequire])
    same_bits: list[RawSameBits] = field(default_factory=list[RawSameBits])
    lets: list[Let] = field(default_factory=list[Let])
    directives: list[RawDirective] = field(default_factory=list[RawDirective])
    epilogues: list[tuple[Parsed, Span]] = field(default_factory=list[tuple[Parsed, Span]])
    broken: set[str] = field(default_factory=set[str])


def read_contents(vocabulary: Vocabulary, mistakes: Mistakes) -> Contents:
    """Every statement of the cleaned source of ``mistakes``."""
    contents = Contents()
    statements = split(mistakes).statements
    if not statements and not mistakes:
        hint = "the line `gemm C[m, n] = A[m, k] * B[k, n]` alone is the naive kernel"
        mistakes.append(Mistake("the schedule is empty", Span(0, 0), hint))
    for statement in statements:
        contents.broken.add(statement.word)
        with mistakes.caught():
            check_word(statement, vocabulary)
            _read(statement, contents, vocabulary, mistakes)
            contents.broken.discard(statement.word)
    return contents


def _example(statement: Statement, vocabulary: Vocabulary) -> str | None:
    """A statement of the same form, for hints."""
    if statement.word == "require" and statement.rest.split()[:1] == [SAME_BITS]:
        return f"require {SAME_BITS} over m"
    return vocabulary.example(statement.word)


def _read(
    statement: Statement, contents: Contents, vocabulary: Vocabulary, mistakes: Mistakes
) -> None:
    reader, tree = Reader(statement), parse(statement, _example(statement, vocabulary))
    match statement.word:
        case "gemm":
            contents.gemms.append((reader.gemm(tree), statement.span))
        case "kernel":
            contents.kernels.append((reader.words(tree)[0], statement.span))
        case "target":
            contents.targets.append((reader.words(tree)[0], statement.span))
        case "dtype":
            contents.dtypes.append(reader.directive(tree))
        case "assume":
            contents.assumes.append(reader.assume(tree))
        case "require":
            required = reader.require(tree)
            if isinstance(required, RawSameBits):
                contents.same_bits.append(required)
            else:
                contents.requires.append(required)
        case "let":
            let = Let(reader.words(tree)[0], reader.value(tree), statement.span)
            contents.lets.append(let)
        case "fuse_epilogue":
            contents.epilogues.append((read_expression(reader, tree, mistakes), statement.span))
        case _:
            contents.directives.append(reader.directive(tree))
