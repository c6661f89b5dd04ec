"""The epilogue over whole matrices, with the emitted text's rounding."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

import numpy as np

from gemmgen.base.record import record
from gemmgen.ir.epilogue_arithmetic import Spelling, reads, reads_unscaled
from gemmgen.ir.expr import Binary, Call, Element, Expr, Float, Select, Var, transform, walk
from gemmgen.ir.problem import Problem
from gemmgen.numerics.axes import along, axes_of
from gemmgen.numerics.epilogue_values import evaluate, in_numpy
from gemmgen.numerics.fma import fused
from gemmgen.numerics.formats import F64, GREATEST, TINY, UNIT, Precision, Real, computing
from gemmgen.numerics.operators import COMPARE, FUNCTIONS, Value

LIBRARY = frozenset({"exp", "tanh", "erf"})
"""Functions that C libraries round differently, by a few units in the last place."""

LIBRARY_ULPS = 4
_TINY = {"f32": 2.0**-140, "f64": 2.0**-1060}
OLD = "old"


@record
class Wanted:
    """The expected C, before it is rounded to its type; ``bound`` (None: exact bits) if it depends
    on a library function."""

    value: Real
    bound: F64 | None


ROUNDED = frozenset({"exp", "erf", "tanh", "sigmoid", "silu", "gelu", "gelu_tanh", "sqrt"})
"""Functions whose steps round: the computed value may differ from an exact value that f32 can
represent."""
FINEST = 2.0**-10
"""Products with a number of an epilogue that is not a multiple of this are assumed to round."""


def rounds(expr: Expr) -> bool:
    """Whether a step of the epilogue may round although f32 can represent the result."""
    match expr:
        case Binary("/"):
            return True
        case Call(function):
            return function in ROUNDED
        case Float(value):
            return value % FINEST != 0
        case _:
            return False


def hides_c(problem: Problem) -> bool:
    """Whether C is read as ``beta * C`` alone, so that beta = 0 must not read it."""
    c = problem.c.name
    return reads(problem.epilogue, c) and not reads_unscaled(problem.epilogue, c)


def is_continuous(problem: Problem) -> bool:
    """Whether C changes little if the sums do."""
    return not any(
        isinstance(e, Select)
        or (isinstance(e, Binary) and e.op in COMPARE)
        or (isinstance(e, Call) and e.function == "round")
        for e in walk(problem.epilogue)
    )


def is_exact(problem: Problem) -> bool:
    """Whether the kernel gives the same bits with every library."""
    return not any(_calls_library(e) for e in walk(_spelt(problem)[1]))


def wanted(
    problem: Problem, acc: Real, tensors: Mapping[str, Real], scalars: Mapping[str, float]
) -> Wanted:
    """C from the sums ``acc``; both, and ``tensors``, are in their roles (``numerics.axes``).

    The arithmetic is the emitted text's: its spelling of functions, one rounding per operation.
    """
    number, numbers = computing(problem.numbers), problem.numbers
    tensors = {name: values.astype(number) for name, values in tensors.items()}
    names = variables(problem, acc, scalars, number)
    if hides_c(problem):
        unread = scalars["beta"] == 0.0
        old = tensors[problem.c.name]
        names[OLD] = np.zeros_like(old) if unread else old
    arithmetic = _Rounded(problem, names, tensors, acc.shape)
    value = arithmetic.result(None, 0.0)
    if not arithmetic.calls:
        return Wanted(value, None)
    size = np.abs(value.astype(np.float64))
    if problem.c.dtype in GREATEST:
        size = np.minimum(size, GREATEST[problem.c.dtype][1])
    ulp = 2 * UNIT[numbers]
    bound = LIBRARY_ULPS * ulp * size + _TINY[numbers]
    if problem.c.dtype != numbers:
        bound = bound + 2 * UNIT[problem.c.dtype] * size + TINY[problem.c.dtype]
    for call in range(arithmetic.calls):
        for sign in (-1.0, 1.0):
            other = arithmetic.result(call, sign * LIBRARY_ULPS * ulp)
            with np.errstate(all="ignore"):
                moved = np.abs(other.astype(np.float64) - value.astype(np.float64))
            bound = bound + np.nan_to_num(moved, nan=0.0, posinf=0.0)
    if problem.c.dtype in GREATEST:
        value = np.clip(value, *GREATEST[problem.c.dtype])
    return Wanted(value, bound)


def variables(
    problem: Problem, acc: Real, scalars: Mapping[str, float], number: Precision
) -> dict[str, Value]:
    """The values of an epilogue's variables, as ``number``s: ``acc``, scalars, and letters along
    their axes."""
    found: dict[str, Value] = {name: number(value) for name, value in scalars.items()}
    found["acc"] = acc.astype(number)
    axes = axes_of(problem, problem.c.name)
    for letter, size in zip(axes, acc.shape, strict=True):
        found[letter] = along(axes, letter, size).astype(number)
    return found


def _spelt(problem: Problem) -> tuple[Spelling, Expr]:
    """The epilogue in the operations of the text, and its local variables."""
    c = problem.c.name

    def rule(expr: Expr) -> Expr | None:
        return Var(OLD) if isinstance(expr, Element) and expr.buffer == c else None

    spelling = Spelling(problem.numbers)
    simplified = transform(problem.epilogue, rule) if hides_c(problem) else problem.epilogue
    return spelling, spelling.spell(simplified)


def _calls_library(expr: Expr) -> bool:
    return isinstance(expr, Call) and expr.function in LIBRARY


@dataclass
class _Rounded:
    """Evaluates an epilogue; ``calls`` counts its library calls, one of which may be moved."""

    problem: Problem
    names: Mapping[str, Value]
    tensors: Mapping[str, Real]
    shape: tuple[int, ...]
    calls: int = 0
    _moved: int | None = field(default=None)
    _by: float = 0.0

    @property
    def number(self) -> Precision:
        return computing(self.problem.numbers)

    def result(self, moved: int | None, by: float) -> Real:
        """The value if library call ``moved`` has the relative error ``by``."""
        self.calls, self._moved, self._by = 0, moved, by
        spelling, value = _spelt(self.problem)
        names, tensors = dict(self.names), cast(Mapping[str, Value], self.tensors)
        arithmetic = in_numpy(self.number, self._call)
        with np.errstate(all="ignore"):
            for define in spelling.defines:
                names[define.name] = evaluate(define.value, names, tensors, arithmetic)
            found = np.asarray(evaluate(value, names, tensors, arithmetic), self.number)
        return np.broadcast_to(found, self.shape)

    def _call(self, function: str, arguments: list[Value]) -> Value:
        if function == "fmaf":
            a, b, c = arguments
            return fused(cast(Real, a), cast(Real, b), cast(Real, c))
        result = FUNCTIONS[function](*arguments)
        if function not in LIBRARY:
            return result
        number, self.calls = self.calls, self.calls + 1
        if number != self._moved:
            return result
        return (np.asarray(result, np.float64) * (1.0 + self._by)).astype(self.number)
