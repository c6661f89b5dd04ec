"""Statements as written: words and their spans, unchecked."""

from __future__ import annotations

from collections.abc import Iterator

from lark import Token, Tree

from gemmgen.base.record import record
from gemmgen.base.source import Span
from gemmgen.schedule.statements import Statement


@record
class Word:
    """A name or a number as written."""

    text: str
    span: Span


@record
class RawSet:
    """``{64, 128}``."""

    items: tuple[Word, ...]
    span: Span


@record
class RawOperand:
    """``A``, ``A.shared`` or ``A[k, m]``."""

    tensor: Word
    hop: Word | None
    indices: tuple[Word, ...] | None
    span: Span

    @property
    def text(self) -> str:
        """The operand without its indices, as keys of sets name it."""
        return self.tensor.text + (f".{self.hop.text}" if self.hop else "")


@record
class RawScale:
    """``SA[k/128, m]``: each index is a letter and the extent of a block along it, if it has
    one.  ``of`` is the operand that it is written with."""

    tensor: Word
    indices: tuple[tuple[Word, Word | None], ...]
    of: Word
    span: Span


@record
class RawGemm:
    """The accesses c, a, b of a ``gemm`` line, and the scales of a and b."""

    accesses: tuple[RawOperand, ...]
    scales: tuple[RawScale, ...]
    span: Span


@record
class RawArgument:
    """``name=value``."""

    name: Word
    value: Word | RawSet
    span: Span


@record
class RawDirective:
    """Operands and ``name=value`` after a first word."""

    word: Word
    operands: tuple[RawOperand, ...]
    arguments: tuple[RawArgument, ...]
    span: Span


@record
class RawAssume:
    """``name % divisor == remainder``, or ``name == other`` (a name or a number)."""

    name: Word
    divisor: Word | None
    other: Word
    span: Span


@record
class RawRequire:
    """``quantity op limit unit``."""

    quantity: Word
    op: Word
    limit: Word
    unit: Word | None
    span: Span


@record
class RawSameBits:
    """``same_bits over m n``: three words or more."""

    what: Word
    over: Word
    letters: tuple[Word, ...]
    span: Span


class Reader:
    """Reads a statement's tree; spans are those of the whole text."""

    def __init__(self, statement: Statement):
        self.span = statement.span
        self.word = Word(statement.word, statement.word_span)
        self.base = statement.start + len(statement.word)

    def at(self, start: int | None, end: int | None) -> Span:
        """The span in the whole text of characters after the first word."""
        assert start is not None and end is not None
        return Span(self.base + start, self.base + end)

    def token(self, token: Token) -> Word:
        return Word(str(token), self.at(token.start_pos, token.end_pos))

    def words(self, tree: Tree[Token]) -> tuple[Word, ...]:
        """The names and numbers directly under ``tree``."""
        return tuple(self.token(t) for t in tree.children if isinstance(t, Token))

    def tree_span(self, tree: Tree[Token]) -> Span:
        return self.at(tree.meta.start_pos, tree.meta.end_pos)

    def directive(self, tree: Tree[Token]) -> RawDirective:
        operands = tuple(self.operand(t) for t in _trees(tree) if t.data in {"operand", "access"})
        arguments = tuple(
            RawArgument(self.words(t)[0], self.value(t), self.tree_span(t))
            for t in _trees(tree)
            if t.data == "argument"
        )
        return RawDirective(self.word, operands, arguments, self.span)

    def gemm(self, tree: Tree[Token]) -> RawGemm:
        """A ``gemm`` line."""
        accesses, scales = list[RawOperand](), list[RawScale]()
        for factor in _trees(tree):
            if factor.data == "access":
                accesses.append(self.operand(factor))
                continue
            access, scale = _trees(factor)
            accesses.append(self.operand(access))
            scales.append(self.scale(scale, accesses[-1].tensor))
        return RawGemm(tuple(accesses), tuple(scales), self.span)

    def scale(self, tree: Tree[Token], of: Word) -> RawScale:
        (tensor,) = self.words(tree)
        indices = list[tuple[Word, Word | None]]()
        for index in _trees(tree):
            letter, *block = self.words(index)
            indices.append((letter, block[0] if block else None))
        return RawScale(tensor, tuple(indices), of, self.tree_span(tree))

    def assume(self, tree: Tree[Token]) -> RawAssume:
        words = self.words(tree)
        divisor = words[1] if tree.data == "divisible" else None
        return RawAssume(words[0], divisor, words[-1], self.span)

    def require(self, tree: Tree[Token]) -> RawRequire | RawSameBits:
        if tree.data == "same_bits":
            what, over, *letters = self.words(tree)
            return RawSameBits(what, over, tuple(letters), self.span)
        quantity, op, limit, *unit = self.words(tree)
        return RawRequire(quantity, op, limit, unit[0] if unit else None, self.span)

    def operand(self, tree: Tree[Token]) -> RawOperand:
        tensor, *others = self.words(tree)
        span = self.tree_span(tree)
        if tree.data == "access":
            return RawOperand(tensor, None, tuple(others), span)
        return RawOperand(tensor, others[0] if others else None, None, span)

    def value(self, tree: Tree[Token]) -> Word | RawSet:
        """The value after the ``=`` of an argument or a ``let``."""
        value = next(_trees(tree))
        if value.data == "set":
            items = tuple(self.words(item)[0] for item in _trees(value))
            return RawSet(items, self.tree_span(value))
        return self.words(value)[0]


def _trees(tree: Tree[Token]) -> Iterator[Tree[Token]]:
    for child in tree.children:
        if isinstance(child, Tree):
            yield child
