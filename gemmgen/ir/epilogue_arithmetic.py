"""The epilogue's arithmetic, spelt out in operations that C and the interpreter share.

Functions become selections and calls of the C library; every product that feeds a sum becomes
``fmaf`` by one rule, so that no compiler's contraction can change a bit: in ``x + y`` the right
product is fused first.  NaN passes through relu, min, max and clamp, as in PyTorch.  Integers are
added and multiplied by one instruction that wraps, ``mad``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from gemmgen.ir.control import Define
from gemmgen.ir.dtypes import DType
from gemmgen.ir.expr import (
    Binary,
    Call,
    Element,
    Expr,
    Float,
    Int,
    Select,
    Unary,
    Var,
    children,
    rebuild,
    walk,
)

LIBRARY = frozenset({"exp", "tanh", "erf", "sqrt", "abs", "round"})
"""Functions that stay calls: each has one C name."""

HALF_ROOT = 0.7071067811865476
"""1 / sqrt(2), of gelu(x) = x/2 * (1 + erf(x / sqrt(2))) (Hendrycks and Gimpel, 2016)."""
ROOT_2_PI = 0.7978845608028654
"""sqrt(2 / pi), of the tanh approximation of gelu in the same paper, with its 0.044715."""
CUBIC = 0.044715


@dataclass
class Spelling:
    """Collects the locals that an expression needs: arguments that are used more than once."""

    numbers: DType = "f32"
    """What is computed in: f64 is made of f32 later."""
    defines: list[Define] = field(default_factory=list[Define])

    @property
    def of_integers(self) -> bool:
        return self.numbers == "i32"

    def spell(self, expr: Expr) -> Expr:
        """``expr`` in operations of C; the locals it uses are appended to ``defines``."""
        if isinstance(expr, Element):  # its indices are integers, in which nothing is fused
            return expr
        if isinstance(expr, Call) and expr.function in FUNCTIONS:
            arguments = tuple(self.spell(a) for a in expr.arguments)
            return self.spell_sums(FUNCTIONS[expr.function](self, arguments))
        if isinstance(expr, Select):
            # The locals of the side that is not chosen are computed too, and not used.
            return Select(self.spell(expr.condition), self.spell(expr.yes), self.spell(expr.no))
        parts = tuple(self.spell(part) for part in children(expr))
        return self._fused(rebuild(expr, parts))

    def spell_sums(self, expr: Expr) -> Expr:
        """The fused form of an expression whose parts are spelt already."""
        if isinstance(expr, Element):
            return expr
        return self._fused(rebuild(expr, tuple(self.spell_sums(part) for part in children(expr))))

    def _fused(self, expr: Expr) -> Expr:
        return wrapping(expr) if self.of_integers else fuse(expr)

    def name(self, expr: Expr) -> Expr:
        """``expr`` under a name, if it is more than a name or a number."""
        if isinstance(expr, Var | Float | Int):
            return expr
        number = len(self.defines)
        name = "value" if number == 0 else f"value_{number + 1}"
        self.defines.append(Define(name, expr, "i32" if self.of_integers else "float"))
        return Var(name)


def fuse(expr: Expr) -> Expr:
    """``a * b + c`` as ``fmaf(a, b, c)``; the right product of a sum first, negated or not."""
    if not isinstance(expr, Binary) or expr.op not in ("+", "-"):
        return expr
    left, right = _product(expr.left), _product(expr.right)
    minus = expr.op == "-"
    if right is not None:
        a, b = right
        return Call("fmaf", (_negated(a) if minus else a, b, expr.left))
    if left is not None:
        return Call("fmaf", (*left, _negated(expr.right) if minus else expr.right))
    return expr


def wrapping(expr: Expr) -> Expr:
    """A sum, a difference, a product or a negation of integers as ``mad``."""
    match expr:
        case Float(value):
            return Int(int(value))
        case Unary("-", Int(value)):
            return Int(-value)
        case Unary("-", x):
            return Call("mad", (x, Int(-1), Int(0)))
        case Binary("*", x, y):
            return Call("mad", (x, y, Int(0)))
        case Binary("+", x, Call("mad", (a, b, Int(0)))):
            return Call("mad", (a, b, x))
        case Binary("+", Call("mad", (a, b, Int(0))), x):
            return Call("mad", (a, b, x))
        case Binary("+", x, y):
            return Call("mad", (x, Int(1), y))
        case Binary("-", x, y):
            return Call("mad", (y, Int(-1), x))
        case Call("abs", (x,)):
            return Select(Binary("<", x, Int(0)), Call("mad", (x, Int(-1), Int(0))), x)
        case _:
            return expr


def _product(expr: Expr) -> tuple[Expr, Expr] | None:
    """The factors of a product; of ``-(a * b)`` they are ``-a`` and ``b``."""
    match expr:
        case Binary("*", a, b):
            return a, b
        case Unary("-", inner):
            factors = _product(inner)
            return (_negated(factors[0]), factors[1]) if factors else None
        case _:
            return None


def _negated(expr: Expr) -> Expr:
    return expr.operand if isinstance(expr, Unary) and expr.op == "-" else Unary("-", expr)


def _times(left: Expr, right: Expr) -> Expr:
    return left * right


def _relu(spelling: Spelling, arguments: tuple[Expr, ...]) -> Expr:
    x = spelling.name(arguments[0])
    return Select(Binary("<", x, Float(0.0)), Float(0.0), x)


def _extreme(op: str) -> Callable[[Spelling, tuple[Expr, ...]], Expr]:
    def spell(spelling: Spelling, arguments: tuple[Expr, ...]) -> Expr:
        x, y = (spelling.name(a) for a in arguments)
        first = Binary("<", x, y) if op == "min" else Binary(">", x, y)
        if spelling.of_integers:
            return Select(first, x, y)
        is_nan = Binary("!=", x, x)
        return Select(Binary("||", first, is_nan), x, y)

    return spell


def _clamp(spelling: Spelling, arguments: tuple[Expr, ...]) -> Expr:
    x, low, high = arguments
    at_least = _extreme("max")(spelling, (x, low))
    return _extreme("min")(spelling, (at_least, high))


def _logistic(x: Expr) -> Expr:
    return Float(1.0) + Call("exp", (Unary("-", x),))


def _sigmoid(spelling: Spelling, arguments: tuple[Expr, ...]) -> Expr:
    return Float(1.0) / _logistic(arguments[0])


def _silu(spelling: Spelling, arguments: tuple[Expr, ...]) -> Expr:
    x = spelling.name(arguments[0])
    return x / _logistic(x)


def _gelu(spelling: Spelling, arguments: tuple[Expr, ...]) -> Expr:
    x = spelling.name(arguments[0])
    bell = Float(1.0) + Call("erf", (_times(x, Float(HALF_ROOT)),))
    return _times(_times(Float(0.5), x), bell)


def _gelu_tanh(spelling: Spelling, arguments: tuple[Expr, ...]) -> Expr:
    x = spelling.name(arguments[0])
    cube = _times(_times(_times(Float(CUBIC), x), x), x)
    inner = _times(Float(ROOT_2_PI), x + cube)
    return _times(_times(Float(0.5), x), Float(1.0) + Call("tanh", (inner,)))


FUNCTIONS: dict[str, Callable[[Spelling, tuple[Expr, ...]], Expr]] = {
    "relu": _relu,
    "min": _extreme("min"),
    "max": _extreme("max"),
    "clamp": _clamp,
    "sigmoid": _sigmoid,
    "silu": _silu,
    "gelu": _gelu,
    "gelu_tanh": _gelu_tanh,
}


def reads(expr: Expr, tensor: str) -> bool:
    """Whether ``expr`` reads ``tensor``."""
    return any(isinstance(part, Element) and part.buffer == tensor for part in walk(expr))


def uses_accumulator_unscaled(expr: Expr) -> bool:
    """Whether ``expr`` uses the accumulators anywhere but in the product ``alpha * acc``."""
    match expr:
        case Binary("*", Var("alpha"), Var("acc")) | Binary("*", Var("acc"), Var("alpha")):
            return False
        case Var("acc"):
            return True
        case _:
            return any(uses_accumulator_unscaled(part) for part in children(expr))


def reads_unscaled(expr: Expr, tensor: str) -> bool:
    """Whether ``expr`` reads ``tensor`` anywhere but in the product ``beta * tensor``."""
    match expr:
        case Binary("*", Var("beta"), Element(buffer, _)) if buffer == tensor:
            return False
        case Binary("*", Element(buffer, _), Var("beta")) if buffer == tensor:
            return False
        case Element(buffer, _) if buffer == tensor:
            return True
        case _:
            return any(reads_unscaled(part, tensor) for part in children(expr))
