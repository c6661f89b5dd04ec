"""Statements to parse trees by ``grammar.lark``, and syntax errors in a user's words."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from gemmgen.errors import Refusal
from gemmgen.schedule.statements import Statement
from gemmgen.schedule.words import EPILOGUE, EXAMPLES
from gemmgen.source import Span, shown

FORMS = {
    "gemm": "gemm",
    "kernel": "name",
    "target": "name",
    "dtype": "directive",
    "assume": "assume",
    "require": "require",
    "let": "let",
    EPILOGUE: "epilogue",
}
"""First words with a form of their own; every other word is a directive's."""

_HINTS = {
    ("directive", ","): "operands and arguments stand apart by spaces: `vectorize A B width=4`",
    ("directive", ":"): "an argument is written `name=value`",
    ("directive", "-"): "a name has letters, digits and `_` alone",
    ("name", "-"): "a name has letters, digits and `_` alone",
    ("epilogue", "?"): "write `where(condition, yes, no)`",
    ("epilogue", "if"): "write `where(condition, yes, no)`",
    ("epilogue", "="): "fuse_epilogue takes the value alone: `fuse_epilogue relu(acc)`",
    ("epilogue", "%"): "an epilogue's arithmetic is + - * /",
    ("epilogue", "^"): "an epilogue's arithmetic is + - * /; a square is written x * x",
    ("epilogue", "&"): "write `&&` or `and`",
    ("epilogue", "|"): "write `||` or `or`",
}
_TERMINALS = {
    "NAME": "a name",
    "NUMBER": "a number",
    "SIGNED": "a number",
    "$END": "the end of the statement",
    "EQUAL": "`=`",
    "EQUALS": "`==`",
    "COMPARE": "`<=` or `==`",
    "LSQB": "`[`",
    "RSQB": "`]`",
    "LPAR": "`(`",
    "RPAR": "`)`",
    "LBRACE": "`{`",
    "RBRACE": "`}`",
    "COMMA": "`,`",
    "DOT": "`.`",
    "STAR": "`*`",
    "PERCENT": "`%`",
}


def parse(statement: Statement) -> Tree[Token]:
    """The tree of what follows a statement's first word; places in it count from that word's end."""
    try:
        return _tree(FORMS.get(statement.word, "directive"), statement.rest)
    except UnexpectedInput as wrong:
        raise _refusal(statement, wrong) from None


@lru_cache(maxsize=1)
def _lark() -> Lark:
    grammar = Path(__file__).with_name("grammar.lark").read_text(encoding="utf-8")
    return Lark(
        grammar,
        parser="lalr",
        lexer="contextual",
        propagate_positions=True,
        start=sorted({*FORMS.values(), "directive"}),
    )


@lru_cache(maxsize=1024)
def _tree(form: str, text: str) -> Tree[Token]:
    """Trees are only read, so equal statements (of a search, of a test) can share one."""
    return _lark().parse(text, start=form)


def _refusal(statement: Statement, wrong: UnexpectedInput) -> Refusal:
    form = FORMS.get(statement.word, "directive")
    example = EXAMPLES.get(statement.word)
    usual = (
        f"write it like `{example}`" if example else "one statement a line, `name=value` arguments"
    )
    if isinstance(wrong, UnexpectedToken) and wrong.token.type == "$END":
        end = statement.span.end
        return Refusal(
            "the statement ends too early",
            at=Span(end - 1, end),
            hint=usual,
            notes=_expected(wrong),
        )
    if isinstance(wrong, UnexpectedToken):
        text, notes = str(wrong.token), _expected(wrong)
    elif isinstance(wrong, UnexpectedCharacters):
        text, notes = wrong.char, ()
    else:
        raise wrong
    start = statement.start + len(statement.word) + (wrong.pos_in_stream or 0)
    hint = _HINTS.get((form, text), usual)
    if form == "epilogue" and text in {"<", "<=", ">", ">=", "==", "!="}:
        hint = "comparisons don't chain: write a < b && b < c"
    return Refusal(_unexpected(text), at=Span(start, start + len(text)), hint=hint, notes=notes)


def _unexpected(text: str) -> str:
    if text.isprintable() and text.isascii():
        return f"unexpected `{shown(text)}`"
    code = f"U+{ord(text[0]):04X}"
    return f"unexpected character {code}" + (f" `{text}`" if text.isprintable() else "")


def _expected(wrong: UnexpectedToken) -> tuple[str, ...]:
    names = {_TERMINALS.get(name, "") for name in wrong.accepts or ()}
    if "" in names or len(names) > 3:
        return ()
    return ("expected here: " + ", or ".join(sorted(names)),)
