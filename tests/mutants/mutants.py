"""Mutants of an emitted kernel: every text with one change."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from gemmgen.base.record import record
from gemmgen.sim.unit import BEGIN, END

from . import asynchronous, planted
from .planted import Change

_OPPOSITE = {
    "<": ("<=",),
    "<=": ("<",),
    ">": (">=",),
    ">=": (">",),
    "==": ("!=",),
    "!=": ("==",),
    "&&": ("||",),
    "||": ("&&",),
    "+": ("-",),
    "-": ("+",),
    "*": ("+",),
    "/": ("%",),
    "%": ("/",),
    "^": ("+",),
    "<<": (">>",),
}
_PAIRS = (
    ("lda", "ldb"),
    ("ldb", "ldc"),
    ("ldc", "lda"),
    ("m", "n"),
    ("n", "k"),
    ("k", "m"),
    ("M", "N"),
    ("N", "K"),
    ("K", "M"),
    ("BM", "BN"),
    ("BN", "BK"),
    ("BK", "BM"),
    ("WM", "WN"),
    ("TM", "TN"),
    ("PM", "PN"),
    ("LM", "LN"),
    ("A", "B"),
    ("A_m", "A_k"),
    ("B_k", "B_n"),
    ("A_shared", "B_shared"),
    ("A_frag", "B_frag"),
    ("A_next", "B_next"),
    ("reg_m", "reg_n"),
    ("thread_m", "thread_n"),
    ("tile_m", "tile_n"),
    ("tile_k", "next_k"),
    ("stage", "next_stage"),
    ("alpha", "beta"),
    ("x", "y"),
    ("warp", "lane"),
    ("blocks_m", "blocks_n"),
    ("group_rows", "full_group"),
    ("own_part", "own_tile"),
    ("stride_A_b", "stride_C_b"),
    ("stride_A_h", "stride_B_h"),
    ("bias", "residual"),
)
_TERM = r"[\w.]+(?: [-+*/%^] [\w.]+)*"
_OPERATOR = re.compile(r" (<<|<=|>=|==|!=|&&|\|\||[-+*/%^<>]) ")
_COMPARISON = re.compile(rf"\b{_TERM} (?:<=|>=|==|!=|<|>) {_TERM}")
_INTEGER = re.compile(r"(?<![\w.])\d+(?![\w.])")
_REAL = re.compile(r"(?<![\w.])\d+\.\d+f\b")
_FMA = re.compile(r"fmaf\(")
_STATEMENT = re.compile(r"[^\s#{}][^;{}]*;")
_DECLARES = re.compile(
    r"(?:const |alignas|__shared__|extern |float |int |constexpr |static_assert)"
)

# Code without effect on a run: compiler limits, and assertions.
_IDLE = re.compile(r"^\s*(?:static_assert|#|//|extern \"C\"|__launch_bounds__)")


@record
class Mutant:
    """``text`` with ``before`` at ``start`` replaced by ``after``, as the rule ``kind`` says."""

    original: str
    start: int
    before: str
    after: str
    kind: str = ""

    @property
    def text(self) -> str:
        end = self.start + len(self.before)
        return self.original[: self.start] + self.after + self.original[end:]

    @property
    def line(self) -> int:
        return self.original.count("\n", 0, self.start) + 1

    def difference(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The lines that it changes, and what they become; without indentation."""
        first, lines = self.line - 1, self.before.count("\n") + 1
        changed = self.text.split("\n")[first : first + self.after.count("\n") + 1]
        old = self.original.split("\n")[first : first + lines]
        return _stripped(old), _stripped(changed)


def mutants(text: str) -> tuple[Mutant, ...]:
    """All of them, in the order of the text."""
    start = text.index(BEGIN) + len(BEGIN)
    body = _blanked(text[: text.index(END)])
    found: dict[Change, str] = {}
    for kind, rule in _RULES.items():
        for change in rule(body, start):
            if change[1] != change[2]:
                found.setdefault(_exactly(text, change), kind)
    return tuple(Mutant(text, *change, kind) for change, kind in sorted(found.items()))


def _exactly(text: str, change: Change) -> Change:
    """A change of several lines keeps the comments between them."""
    start, before, after = change
    if "\n" not in before or text.startswith(before, start):
        return change
    return start, text[start : start + len(before)], after


Rule = Callable[[str, int], Iterator[Change]]


def _blanked(text: str) -> str:
    """The text with blanks for all that is not code; characters keep their positions."""
    lines: list[str] = []
    for line in text.split("\n"):
        code = "" if _IDLE.match(line) else line.partition("//")[0]
        lines.append(code.ljust(len(line)))
    return "\n".join(lines)


def operator_changes(body: str, start: int) -> Iterator[Change]:
    at = start
    while found := _OPERATOR.search(body, at):
        at = found.end() - 1
        for other in _OPPOSITE[found[1]]:
            yield found.start(1), found[1], other


def _conditions(body: str, start: int) -> Iterator[Change]:
    """A comparison that always holds: a guard dropped.  Loops are left to end."""
    for found in _COMPARISON.finditer(body, start):
        line = body[body.rfind("\n", 0, found.start()) + 1 : found.start()]
        if not line.strip().startswith("for"):
            yield found.start(), found[0], "true"


def number_changes(body: str, start: int) -> Iterator[Change]:
    for found in _INTEGER.finditer(body, start):
        value = int(found[0])
        if body[: found.start()].endswith("alignas("):
            yield found.start(), found[0], "4"
            continue
        for other in (value + 1, value - 1):
            if other >= 0:
                yield found.start(), found[0], str(other)
    for found in _REAL.finditer(body, start):
        yield found.start(), found[0], "1.0f" if float(found[0][:-1]) == 0 else "0.0f"


def _names(body: str, start: int) -> Iterator[Change]:
    for one, other in _PAIRS:
        if not re.search(rf"\b{other}\b", body[start:]) or not re.search(
            rf"\b{one}\b", body[start:]
        ):
            continue
        for before, after in ((one, other), (other, one)):
            for found in re.finditer(rf"\b{before}\b", body[start:]):
                yield start + found.start(), before, after


def _sums(body: str, start: int) -> Iterator[Change]:
    """A multiply-add that loses an operand, or rounds twice."""
    for found in _FMA.finditer(body, start):
        end = closing(body, found.end() - 1)
        a, b, c = _arguments(body[found.end() : end])
        whole = body[found.start() : end + 1]
        for after in (f"({a}) * ({b}) + ({c})", f"({a}) * ({b})", c, f"fmaf({a}, {c}, {b})"):
            yield found.start(), whole, after


def _statements(body: str, start: int) -> Iterator[Change]:
    """A statement that is left out, unless it declares something."""
    for found in _STATEMENT.finditer(body, body.index("{\n", start)):
        statement = found[0]
        if _DECLARES.match(statement) or statement.startswith(("for", "else")):
            continue
        if statement.startswith("if"):
            end = found.start() + closing(statement, statement.index("(")) + 1
            statement = body[end : found.end()].lstrip()
        yield found.end() - len(statement), statement, ";"


def _casts(body: str, start: int) -> Iterator[Change]:
    """An offset of 32 bits."""
    for found in re.finditer(r"\(long long\)", body[start:]):
        yield start + found.start(), found[0], "(int)"


_RULES: dict[str, Rule] = {
    **asynchronous.KERNEL,
    "tile count": planted.counts,
    "stale fill": planted.stale_fills,
    "copied tail": planted.unfilled_copies,
    "short k": planted.short_k,
    "few blocks": planted.few_blocks,
    "all casts": planted.no_casts,
    "cast": _casts,
    "guard": _conditions,
    "statement": _statements,
    "product": _sums,
    "name": _names,
    "operator": operator_changes,
    "number": number_changes,
}

KINDS = tuple(_RULES)


def closing(text: str, opening: int) -> int:
    """Where the bracket at ``opening`` is closed."""
    depth = 0
    for i in range(opening, len(text)):
        depth += {"(": 1, ")": -1}.get(text[i], 0)
        if depth == 0:
            return i
    raise AssertionError("an unbalanced bracket")


def _arguments(text: str) -> list[str]:
    parts, depth, begin = [""], 0, 0
    for i, character in enumerate(text):
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts[-1] = text[begin:i].strip()
            parts.append("")
            begin = i + 1
    parts[-1] = text[begin:].strip()
    return parts


def _stripped(lines: list[str]) -> tuple[str, ...]:
    return tuple(line.strip() for line in lines)
