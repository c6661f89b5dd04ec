"""Syntax highlighting of ``.sched`` blocks."""

from __future__ import annotations

from typing import ClassVar

from pygments.lexer import RegexLexer, bygroups, words
from pygments.lexers._mapping import LEXERS
from pygments.token import Comment, Keyword, Name, Number, Operator, Text

from gemmgen.ir.expr import FUNCTIONS
from gemmgen.language import VOCABULARY

__all__ = ["ScheduleLexer"]


class ScheduleLexer(RegexLexer):
    """Statements, arguments, functions, numbers and comments."""

    name = "gemmgen schedule"
    aliases: ClassVar[list[str]] = ["sched"]
    filenames: ClassVar[list[str]] = ["*.sched"]
    tokens: ClassVar[dict[str, list[object]]] = {
        "root": [
            (r"#.*", Comment.Single),
            (r"(^\s*)(" + "|".join(VOCABULARY.statements) + r")\b", bygroups(Text, Keyword)),
            (words(tuple(FUNCTIONS), suffix=r"(?=\()"), Name.Function),
            (r"([A-Za-z_]\w*)(=)(?!=)", bygroups(Name.Attribute, Operator)),
            (r"\d[\w.]*", Number),
            (r"[A-Za-z_]\w*", Name),
            (r"[-+*/=<>!%&|]", Operator),
            (r"\s+|.", Text),
        ]
    }


def register() -> None:
    """Registers the lexer with Pygments by its name."""
    LEXERS["ScheduleLexer"] = (__name__, ScheduleLexer.name, ("sched",), ("*.sched",), ())
