"""What divides the values of a lowered kernel's expressions: facts about every address at once.

A name represents all of its definitions, loops and assignments in the kernel, so a divisor holds
whatever path a thread takes.
"""

from __future__ import annotations

from collections.abc import Callable
from math import gcd

from gemmgen.ir.control import Assign, Define, For
from gemmgen.ir.expr import Binary, Expr, Int, Select, Unary, Var, Wide
from gemmgen.ir.lowered import LoweredKernel
from gemmgen.ir.traversal import inside


class Divisors:
    """The divisors of a kernel's expressions of integers."""

    def __init__(self, kernel: LoweredKernel):
        self._interface = kernel.interface
        self._known = {constant.name: constant.value for constant in kernel.constants}
        self._values: dict[str, list[Expr]] = {}
        for node in inside(kernel.body):
            match node:
                case Define(name, value) | Assign(str() as name, value):
                    self._values.setdefault(name, []).append(value)
                case For(variable, start, _, step):
                    self._values.setdefault(variable, []).extend((start, step))
                case _:
                    pass
        self._found: dict[str, int] = {}

    def of(self, expr: Expr) -> int:
        """The greatest number that is known to divide ``expr``; 0 if ``expr`` is 0."""
        match expr:
            case Int(value):
                return abs(value)
            case Var(name):
                return self._of_name(name)
            case Unary("-", operand) | Wide(operand):
                return self.of(operand)
            case Select(_, yes, no):
                return gcd(self.of(yes), self.of(no))
            case Binary(op, left, right) if op in _RULES:
                return _RULES[op](self.of(left), self.of(right), self.value(right))
            case _:
                return 1

    def value(self, expr: Expr) -> int | None:
        """The value of an expression of constants; None if it varies."""
        match expr:
            case Int(value):
                return value
            case Var(name):
                return self._known.get(name)
            case Binary(op, left, right) if op in _FOLDED:
                first, second = self.value(left), self.value(right)
                if first is None or second is None or (second == 0 and op in "/%"):
                    return None
                return _FOLDED[op](first, second)
            case _:
                return None

    def _of_name(self, name: str) -> int:
        if name in self._known:
            return abs(self._known[name])
        if name not in self._found:
            self._found[name] = 1  # of a name that its own value depends on nothing is known
            values = self._values.get(name)
            own = gcd(*map(self.of, values)) if values else self._of_argument(name)
            self._found[name] = own
        return self._found[name]

    def _of_argument(self, name: str) -> int:
        """What the launcher checks that an extent or a leading dimension is a multiple of."""
        return self._interface.divisor(name)


def _quotient(left: int, _right: int, by: int | None) -> int:
    return left // by if by and left % by == 0 else 1


def _remainder(left: int, _right: int, by: int | None) -> int:
    return gcd(left, by) if by else 1


def _shifted(left: int, _right: int, by: int | None) -> int:
    return left << by if by is not None else left


_RULES: dict[str, Callable[[int, int, int | None], int]] = {
    "+": lambda left, right, _: gcd(left, right),
    "-": lambda left, right, _: gcd(left, right),
    "*": lambda left, right, _: left * right,
    "/": _quotient,
    "%": _remainder,
    "<<": _shifted,
}
"""The divisor of a result, from those of its operands and from the right one's value."""
_FOLDED: dict[str, Callable[[int, int], int]] = {
    "+": int.__add__,
    "-": int.__sub__,
    "*": int.__mul__,
    "/": int.__floordiv__,
    "%": int.__mod__,
}
