"""The integer constants of an emitted text that the extents of some call must cross.

A kernel, a pre-pass or a launcher may behave differently on each side of a constant that an extent
is compared with, divided by, or reached by in steps: 1024 columns of a pre-pass's block, the
rounding of a grid.  A mistake on one side does not show in calls on the other side.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import product

from gemmgen.base.record import record
from gemmgen.sim.unit import BEGIN

MOST = 1 << 16
"""The largest constant that a run of the kernel has to cross.  Larger ones are limits, which calls
of the launcher alone cross."""

_NOT_CODE = re.compile(
    r"//[^\n]*"
    r"|\bstatic_assert\((?:[^()\"]|\([^()]*\))*, \"[^\"]*\"\);"
    r"|\"(?:[^\"\\\n]|\\.)*\""
)
_DEFINITIONS = re.compile(r"\bconstexpr int ([^;{}]*);")
_NEXT_DEFINITION = re.compile(r",\s+(?=\w+ = )")
_SIZEOF = re.compile(r"sizeof\([^()]*\)")
_OPERATOR = r"(?:<<|>>|[<>=!]=|[-+*/%]=|[<>/%*&])"
_CONSTANT = r"(?<![\w.])((?:0x[0-9a-fA-F]+|[0-9]+|[A-Za-z_]\w*))(?:U|L|LL|ULL)?\b(?![.(\[])"
_TEMPLATE_ARGUMENTS = re.compile(r"(?<=\w)<[\w, ]+>(?=\()")
_AFTER = re.compile(rf"{_OPERATOR}\s*\(?{_CONSTANT}")
_BEFORE = re.compile(rf"{_CONSTANT}\)?\s*{_OPERATOR}")
_ARGUMENT = re.compile(rf"\bmin\([^()]*,\s*{_CONSTANT}\)")


@record
class Crossing:
    """What no call does yet: an extent that ``constant`` divides (``exact``), or one beyond it that
    it does not divide.  ``letter`` is 0, 1 or 2 for M, N or K."""

    constant: int
    letter: int
    exact: bool

    @property
    def extent(self) -> int:
        """The least such extent; beyond the constant, with a whole second step and a part."""
        return self.constant if self.exact else 2 * self.constant + 1

    def is_done_by(self, size: int) -> bool:
        if self.exact:
            return size > 0 and size % self.constant == 0
        return size > self.constant and size % self.constant != 0


def constants(text: str) -> tuple[int, ...]:
    """The integers above 1 that the kernel, its pre-passes or its launcher compare, divide,
    multiply, shift or count by, in ascending order."""
    code = _TEMPLATE_ARGUMENTS.sub(" ", _NOT_CODE.sub(" ", text[text.index(BEGIN) :]))
    named = definitions(code)
    words = {found[1] for each in (_AFTER, _BEFORE, _ARGUMENT) for found in each.finditer(code)}
    values = {_value(word, named) for word in words}
    return tuple(sorted(value for value in values if value is not None and value > 1))


def definitions(code: str) -> dict[str, int]:
    """The values of the integer constants that ``code`` defines."""
    named = dict[str, int]()
    for found in _DEFINITIONS.finditer(code):
        for each in _NEXT_DEFINITION.split(found[1]):
            name, _, text = each.partition(" = ")
            value = _evaluate(" ".join(text.split()), named)
            if value is not None:
                named[name] = value
    return named


def uncrossed(numbers: Iterable[int], shapes: Iterable[tuple[int, ...]]) -> Iterator[Crossing]:
    """What none of ``shapes`` crosses of these constants, without those above ``MOST``."""
    extents = tuple(set(each) for each in zip(*(shape[:3] for shape in shapes), strict=True))
    for number, (letter, sizes), exact in product(numbers, enumerate(extents), (True, False)):
        crossing = Crossing(number, letter, exact)
        if number <= MOST and not any(map(crossing.is_done_by, sizes)):
            yield crossing


def _value(word: str, named: Mapping[str, int]) -> int | None:
    if not word[0].isdigit():
        return named.get(word)
    return int(word, 16 if word.startswith("0x") else 10)


def _evaluate(text: str, named: Mapping[str, int]) -> int | None:
    """The value of an expression of integers; None for another one."""
    try:
        return _computed(ast.parse(_SIZEOF.sub("1", text), mode="eval").body, named)
    except (SyntaxError, ZeroDivisionError, ValueError):
        return None


def _computed(node: ast.expr, named: Mapping[str, int]) -> int | None:
    match node:
        case ast.Constant(int(value)):
            return value
        case ast.Name(name):
            return named.get(name)
        case ast.BinOp(left, by, right):
            pair = _computed(left, named), _computed(right, named)
            return None if pair[0] is None or pair[1] is None else _combined(pair[0], by, pair[1])
        case _:
            return None


def _combined(a: int, by: ast.operator, b: int) -> int | None:
    match by:
        case ast.Add():
            return a + b
        case ast.Sub():
            return a - b
        case ast.Mult():
            return a * b
        case ast.Div():
            return a // b
        case ast.Mod():
            return a % b
        case ast.LShift():
            return a << b
        case _:
            return None
