"""The epilogue's expression language: parse trees to ``ir.expr`` nodes."""

from __future__ import annotations

import re
from typing import cast

from lark import Token, Tree

from gemmgen.base.errors import Mistake, Mistakes, Refusal
from gemmgen.base.record import record
from gemmgen.base.source import Span, shown
from gemmgen.ir.expr import (
    FUNCTIONS,
    ArithmeticOp,
    Binary,
    Call,
    CompareOp,
    Element,
    Expr,
    Float,
    Select,
    Unary,
    Var,
)
from gemmgen.schedule.raw import Reader, Word
from gemmgen.schedule.statements import DEEPEST
from gemmgen.schedule.words import close

MOST_NODES = 1000
_NUMBER = re.compile(r"(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")

_WRONG = Var("?")
"""Replaces a part that was refused, so that the rest is read."""

_FUNCTIONS_ELSEWHERE = {
    "if": "where",
    "select": "where",
    "ternary": "where",
    "swish": "silu",
    "erf": "gelu",
    "fmax": "max",
    "fmaxf": "max",
    "maximum": "max",
    "fmin": "min",
    "fminf": "min",
    "minimum": "min",
    "fabs": "abs",
    "expf": "exp",
    "rint": "round",
    "clip": "clamp",
    "hardtanh": "clamp",
    "sigm": "sigmoid",
    "logistic": "sigmoid",
    "gelu_new": "gelu_tanh",
}


@record
class Use:
    """A name in an expression; ``indices`` is None without brackets."""

    name: str
    indices: tuple[Word, ...] | None
    span: Span


@record
class Parsed:
    """An epilogue, the names in it and its numbers, left to right."""

    expression: Expr
    uses: tuple[Use, ...]
    numbers: tuple[Word, ...]
    span: Span


def read_expression(reader: Reader, tree: Tree[Token], mistakes: Mistakes) -> Parsed:
    """The expression under an ``epilogue`` tree, its mistakes recorded; refuses one too large."""
    (body,) = tree.children
    assert isinstance(body, Tree)
    _check_size(reader, body)
    inner = _Expressions(reader, mistakes)
    return Parsed(
        inner.value(body), tuple(inner.uses), tuple(inner.numbers), reader.tree_span(body)
    )


def _check_size(reader: Reader, tree: Tree[Token]) -> None:
    """Bounds the size and depth of expressions, for functions that recurse; does not recurse."""
    level, count, depth = [tree], 0, 0
    while level:
        count, depth = count + len(level), depth + 1
        level = [c for t in level for c in t.children if isinstance(c, Tree)]
    span = reader.tree_span(tree)
    if count > MOST_NODES:
        raise Refusal(
            f"the expression has {count} terms and operations, at most {MOST_NODES} are taken",
            at=span,
            hint="do a part of it in a separate kernel",
        )
    if depth > DEEPEST:
        raise Refusal(
            f"the expression is nested {depth} deep, at most {DEEPEST} are taken",
            at=span,
            hint="bracket a long sum in parts of 32 terms, (a + b) + (c + d); "
            "drop signs and functions that change nothing",
        )


class _Expressions:
    """Reads a tree; a part that is wrong is recorded, and replaced by ``_WRONG``."""

    def __init__(self, reader: Reader, mistakes: Mistakes):
        self.reader, self.mistakes = reader, mistakes
        self.uses: list[Use] = []
        self.numbers: list[Word] = []

    def value(self, tree: Tree[Token]) -> Expr:
        """A number; refuses a condition."""
        expr = self.read(tree)
        if expr is not _WRONG and _is_condition(expr):
            message = "a condition is given, but a number is needed"
            self.refuse(message, tree, "where(condition, 1, 0) makes a number of it")
        return expr

    def condition(self, tree: Tree[Token]) -> Expr:
        expr = self.read(tree)
        if expr is not _WRONG and not _is_condition(expr):
            message = "a number is given, but a condition is needed"
            self.refuse(message, tree, "compare it: x > 0, or x != 0")
        return expr

    def refuse(self, message: str, tree: Tree[Token], hint: str) -> None:
        self.mistakes.append(Mistake(message, self.reader.tree_span(tree), hint))

    def read(self, tree: Tree[Token]) -> Expr:
        with self.mistakes.caught():
            return self.node(tree)
        return _WRONG

    def node(self, tree: Tree[Token]) -> Expr:
        trees = [child for child in tree.children if isinstance(child, Tree)]
        words = self.reader.words(tree)
        match str(tree.data):
            case "number":
                number = _number(words[0])
                self.numbers.append(words[0])
                return number
            case "variable":
                self.uses.append(Use(words[0].text, None, words[0].span))
                return Var(words[0].text)
            case "element":
                return self.element(words[0], trees, self.reader.tree_span(tree))
            case "call":
                return self.call(words[0], trees, self.reader.tree_span(tree))
            case "negative":
                return Unary("-", self.value(trees[0]))
            case "not_":
                return Unary("!", self.condition(trees[0]))
            case "and_":
                return Binary("&&", self.condition(trees[0]), self.condition(trees[1]))
            case "or_":
                return Binary("||", self.condition(trees[0]), self.condition(trees[1]))
            case _:
                op = cast("ArithmeticOp | CompareOp", words[0].text)
                left, right = self.value(trees[0]), self.value(trees[1])
                if op == "/" and right == Float(0.0):
                    hint = "divide by another number; where(x < 0, y, z) chooses between values"
                    self.refuse("a division by zero", trees[1], hint)
                return Binary(op, left, right)

    def element(self, name: Word, trees: list[Tree[Token]], span: Span) -> Expr:
        indices: list[Word] = []
        for tree in trees:
            if tree.data != "variable":
                raise Refusal(
                    f"an index of {name.text} is a letter of the output, nothing else",
                    at=self.reader.tree_span(tree),
                    hint=f"write it like `{name.text}[n]`",
                )
            indices.append(self.reader.words(tree)[0])
        self.uses.append(Use(name.text, tuple(indices), span))
        return Element(name.text, tuple(Var(index.text) for index in indices))

    def call(self, name: Word, trees: list[Tree[Token]], span: Span) -> Expr:
        if len(trees) != FUNCTIONS.get(name.text):
            for tree in trees:
                self.read(tree)
        if name.text not in FUNCTIONS:
            near = _FUNCTIONS_ELSEWHERE.get(name.text) or close(name.text, FUNCTIONS)
            known = "the functions are " + ", ".join(FUNCTIONS)
            hint = f"did you mean `{near}`?" if near else known
            raise Refusal(f"unknown function `{shown(name.text)}`", at=name.span, hint=hint)
        arity = FUNCTIONS[name.text]
        if len(trees) != arity:
            raise Refusal(
                f"{name.text} takes {arity} argument{'s' * (arity > 1)}, not {len(trees)}",
                at=span,
                hint=f"write it like `{name.text}({', '.join(_ARGUMENTS[name.text])})`",
            )
        if name.text == "where":
            return Select(self.condition(trees[0]), self.value(trees[1]), self.value(trees[2]))
        return Call(name.text, tuple(self.value(tree) for tree in trees))


_ARGUMENTS = {name: ("x",) for name in FUNCTIONS} | {
    "min": ("x", "y"),
    "max": ("x", "y"),
    "clamp": ("x", "low", "high"),
    "where": ("condition", "yes", "no"),
}


def _is_condition(expr: Expr) -> bool:
    match expr:
        case Binary(op, _, _):
            return op not in {"+", "-", "*", "/"}
        case Unary(op, _):
            return op == "!"
        case _:
            return False


def _number(word: Word) -> Expr:
    text = word.text
    if not _NUMBER.fullmatch(text):
        plain = re.fullmatch(r"([0-9.]+)[fF]", text)
        hint = f"write {plain.group(1)}" if plain else "numbers are written like 2, 0.5 or 1e-5"
        raise Refusal(f"`{shown(text)}` is not a number", at=word.span, hint=hint)
    return Float(float(text))
