"""Parse trees of statements by ``grammar.lark``, and messages for syntax errors."""

# lark's annotations leave the kind of its input open, so that some of its attributes are unknown.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import marshal
import re
import sys
from dataclasses import dataclass
from functools import lru_cache
from itertools import takewhile
from pathlib import Path
from typing import cast
from unicodedata import category, decimal, normalize

from lark import Lark, Token, Tree, __version__
from lark.exceptions import UnexpectedCharacters, UnexpectedToken
from lark.grammar import Rule
from lark.lexer import TerminalDef

from gemmgen.base import caches
from gemmgen.base.errors import Refusal
from gemmgen.base.source import Span, shown
from gemmgen.schedule.statements import COMMENT, Statement, begins_comment

FORMS = {
    "gemm": "gemm",
    "kernel": "name",
    "target": "name",
    "dtype": "directive",
    "assume": "assume",
    "require": "require",
    "let": "let",
    "fuse_epilogue": "epilogue",
}
"""First words with their own form; every other word is a directive's."""

_SCALED = "factors of blocks are written after their operand: `(A[m, k] * SA[k/128, m])`"
_HINTS = {
    ("directive", ","): "operands and arguments are separated by spaces: `vectorize A B width=4`",
    ("directive", ":"): "an argument is written `name=value`",
    ("directive", "-"): "a name has letters, digits and `_` alone",
    ("directive", "/"): "numbers are written out: 64, not 128/2",
    ("directive", "^"): "numbers are written out: 64, not 2^6",
    ("directive", "*"): "numbers are written out: 64, not 2*32",
    ("name", "-"): "a name has letters, digits and `_` alone",
    ("assume", "="): "write `==`, as in `assume lda == K`",
    ("require", "="): "write `==`, as in `require spills == 0`",
    ("gemm", "+"): "an epilogue adds: `fuse_epilogue acc + bias[n]`",
    ("gemm", "+="): "an epilogue adds: `fuse_epilogue acc + C[m, n]`",
    ("gemm", "/"): _SCALED,
    ("gemm", ")"): _SCALED,
    ("gemm", "("): "indices are written in square brackets: `A[m, k]`",
    ("epilogue", "?"): "write `where(condition, yes, no)`",
    ("epilogue", "if"): "write `where(condition, yes, no)`",
    ("epilogue", "="): "fuse_epilogue takes the value alone: `fuse_epilogue relu(acc)`",
    ("epilogue", "%"): "an epilogue's arithmetic is + - * /",
    ("epilogue", "*"): "an epilogue's arithmetic is + - * /; a square is written x * x",
    ("epilogue", "^"): "an epilogue's arithmetic is + - * /; a square is written x * x",
    ("epilogue", "&"): "write `&&` or `and`",
    ("epilogue", "|"): "write `||` or `or`",
}
_EVERYWHERE = {
    "\\": "an open bracket continues a line, a backslash does not",
    '"': "names and numbers are written without quotes",
    "'": "names and numbers are written without quotes",
    ";": "a statement ends with its line",
}
_EMPTY = re.compile(r"([A-Za-z_]\w*)[ \t]*=\s*[A-Za-z_]\w*\s*$")
"""An argument without a value, before the next one's ``=``."""
_LOOKALIKES = {
    "\u00d7": "*",
    "\u00b7": "*",
    "\u22c5": "*",
    "\u2217": "*",
    "\u2264": "<=",
    "\u2265": ">=",
    "\u2260": "!=",
    "\u2212": "-",
    "\u2010": "-",
    "\u2011": "-",
    "\u2013": "-",
    "\u2014": "-",
}
"""Characters of word processors and formulas, and those that are meant."""
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
    "SLASH": "`/`",
    "PERCENT": "`%`",
}
_TABLES = "tables"


@dataclass(eq=False)
class _Syntax(Exception):
    """An error of lark: the text there, its offset, and the terminals that are accepted there.

    ``text`` is "" at the end of the statement.
    """

    text: str
    offset: int
    accepts: frozenset[str]


def parse(statement: Statement, example: str | None = None) -> Tree[Token]:
    """The tree of what follows a statement's first word; its positions count from that word's end.

    ``example`` is such a statement, for hints.
    """
    try:
        return _tree(FORMS.get(statement.word, "directive"), statement.rest)
    except _Syntax as wrong:
        raise _refusal(statement, wrong, example) from None


@lru_cache(maxsize=1)
def _lark() -> Lark:
    """The parser, from its tables in the user's cache if they are there."""
    grammar = Path(__file__).with_name("grammar.lark").read_text(encoding="utf-8")
    name = f"grammar-{caches.key(sys.version, __version__, grammar)}"
    kept = caches.read(name)
    if kept is not None:
        return Lark.load(marshal.loads(kept[_TABLES]))
    parser = Lark(
        grammar,
        parser="lalr",
        lexer="contextual",
        propagate_positions=True,
        start=sorted({*FORMS.values(), "directive"}),
    )
    data, memo = parser.memo_serialize([TerminalDef, Rule])
    caches.write(name, {_TABLES: marshal.dumps({"data": data, "memo": memo})})
    return parser


@lru_cache(maxsize=1024)
def _tree(form: str, text: str) -> Tree[Token]:
    """Trees are only read, so equal statements (of a search, of a test) can share one."""
    try:
        return _lark().parse(text, start=form)
    except UnexpectedCharacters as wrong:
        raise _Syntax(str(wrong.char), int(wrong.pos_in_stream or 0), frozenset()) from None
    except UnexpectedToken as wrong:
        token = cast(Token, wrong.token)
        accepts = frozenset(wrong.accepts or ())
        text = "" if token.type == "$END" else str(token)
        raise _Syntax(text, token.start_pos or 0, accepts) from None


def _refusal(statement: Statement, wrong: _Syntax, example: str | None) -> Refusal:
    form = FORMS.get(statement.word, "directive")
    hint = f"write it like `{example}`" if example else "arguments are `name=value`"
    notes = _expected(wrong.accepts)
    if not wrong.text:
        end = statement.span.end
        span = Span(end - 1, end)
        return Refusal("the statement ends too early", at=span, hint=hint, notes=notes)
    start = statement.start + len(statement.word) + wrong.offset
    hint = _HINTS.get((form, wrong.text)) or _EVERYWHERE.get(wrong.text, hint)
    at = start - statement.start
    if begins_comment(statement.text[at:]) or begins_comment(statement.text[at - 1 :]):
        hint = COMMENT
    if form == "name" and statement.word == "kernel" and hint == f"write it like `{example}`":
        hint = f"a name is one word of letters, digits and `_`: `{example}`"
    empty = _EMPTY.search(statement.rest[: wrong.offset])
    if form == "directive" and wrong.text == "=" and empty:
        name = empty.group(1)
        start = statement.start + len(statement.word) + empty.start(1)
        span = Span(start, start + len(name))
        return Refusal(f"{shown(name)} has no value", at=span, hint=f"write it as `{name}=...`")
    if form == "epilogue" and wrong.text in {"<", "<=", ">", ">=", "==", "!="}:
        hint = "comparisons don't chain: write a < b && b < c"
    if wrong.text in {")", "]", "}"} and "$END" in wrong.accepts:
        hint = "no bracket is open here"
    elif not wrong.text.isascii():
        hint = _plain(statement.text[start - statement.start :]) or hint
    span = Span(start, start + len(wrong.text))
    return Refusal(_unexpected(wrong.text), at=span, hint=hint, notes=notes)


def _unexpected(text: str) -> str:
    if text.isprintable() and text.isascii():
        return f"unexpected `{shown(text)}`"
    code = f"U+{ord(text[0]):04X}"
    return f"unexpected character {code}" + (f" `{text}`" if text.isprintable() else "")


def _plain(text: str) -> str | None:
    """The hint for characters at the beginning of ``text`` that resemble the language's."""
    first = text[0]
    plain = normalize("NFKC", first)
    if first.isspace() or plain.isspace():
        return "this character only looks like a space; write a space"
    if first in "\u2018\u2019\u201c\u201d":
        return _EVERYWHERE['"']
    if category(first) in {"Cf", "Mn", "Me"}:
        return "this character is invisible; delete it"
    run = "".join(takewhile(lambda c: not c.isascii() and _ascii(c), text))
    if run:
        return f"write `{''.join(map(_ascii, run))}`"
    if first.isalpha():
        return "words use the letters a to z; this character only looks like one"
    return None


def _ascii(character: str) -> str:
    """The character of the language that this one resembles, or ""."""
    if character in _LOOKALIKES:
        return _LOOKALIKES[character]
    plain = normalize("NFKC", character)
    if plain.isascii() and plain.isprintable():
        return plain
    value = decimal(character, None)
    return "" if value is None else str(value)


def _expected(accepts: frozenset[str]) -> tuple[str, ...]:
    names = {_TERMINALS.get(name, "") for name in accepts}
    if not names or "" in names or len(names) > 3:
        return ()
    return ("expected here: " + ", or ".join(sorted(names)),)
