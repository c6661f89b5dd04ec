"""z3, the only file that knows it: terms are opaque to all others.

z3 has no types of its own, so that ``Term`` is any of its expressions.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, Literal

from gemmgen.base.errors import UsageError
from gemmgen.base.installing import install
from gemmgen.base.record import record

Term = Any
Status = Literal["proved", "refuted", "unknown"]


TACTICS = ("simplify", "solve-eqs", "smt")
"""What has an equation is eliminated first: counts of tiles by extents, products by their factors.
z3's default solver took seconds for some of these questions, depending on the names that it had
seen before, and these take hundredths."""


@record
class Answer:
    """Whether a conjunction can hold (``sat``), with the integers for which it does."""

    status: Literal["sat", "unsat", "unknown"]
    values: dict[str, int]
    seconds: float


@cache
def module() -> Any:
    """z3; raises ``UsageError`` if it is not installed."""
    try:
        return importlib.import_module("z3")
    except ImportError:
        raise UsageError(
            f"prove needs the solver z3, which is not installed: {install('prove')}"
        ) from None


def version() -> str:
    """The name and the version of the solver; raises ``UsageError`` if it is not installed."""
    return f"z3 {module().get_version_string()}"


@cache
def integer(name: str) -> Term:
    """The integer variable ``name``."""
    return module().Int(name)


@cache
def flag(name: str) -> Term:
    """The truth ``name``."""
    return module().Bool(name)


def number(value: int) -> Term:
    return module().IntVal(value)


def truth(value: bool) -> Term:
    return module().BoolVal(value)


def product(factors: Sequence[Term]) -> Term:
    total = factors[0]
    for factor in factors[1:]:
        total = total * factor
    return total


def all_of(parts: Sequence[Term]) -> Term:
    return parts[0] if len(parts) == 1 else module().And(*parts)


def any_of(parts: Sequence[Term]) -> Term:
    return parts[0] if len(parts) == 1 else module().Or(*parts)


def negated(part: Term) -> Term:
    return module().Not(part)


def satisfiable(terms: Iterable[Term], seconds: float) -> Answer:
    """Whether all ``terms`` can hold at once; ``unknown`` after ``seconds``."""
    z3 = module()
    solver = z3.Then(*TACTICS).solver()
    solver.set("timeout", max(1, int(seconds * 1000)))
    solver.add(*terms)
    begin = time.perf_counter()
    found = str(solver.check())
    spent = time.perf_counter() - begin
    values: dict[str, int] = {}
    if found == "sat":
        model = solver.model()
        for declared in model.decls():
            value = model[declared]
            if z3.is_int_value(value):
                values[declared.name()] = value.as_long()
            elif z3.is_bool(value):
                values[declared.name()] = int(z3.is_true(value))
    status: Any = found if found in ("sat", "unsat") else "unknown"
    return Answer(status, values, spent)


def smtlib(terms: Iterable[Term]) -> str:
    """The question whether all ``terms`` can hold at once, as SMT-LIB text."""
    solver = module().Solver()
    solver.add(*terms)
    return str(solver.to_smt2())


@cache
def real(name: str) -> Term:
    """The real variable ``name``."""
    return module().Real(name)


@cache
def real_number(value: float) -> Term:
    """A float as the rational number that it is."""
    top, bottom = value.as_integer_ratio()
    return module().Q(top, bottom)


def function(name: str, *arguments: Term) -> Term:
    """A function of reals; nothing but its name is known."""
    z3 = module()
    return z3.Function(name, *(z3.RealSort() for _ in range(len(arguments) + 1)))(*arguments)


def either(test: Term, yes: Term, no: Term) -> Term:
    return module().If(test, yes, no)
