"""cvc5, the only file that knows it: it reads a query as SMT-LIB text."""

from __future__ import annotations

import importlib
import re
from functools import cache
from typing import Any, Literal

from gemmgen.base.errors import UsageError
from gemmgen.base.installing import install

LOGIC = "QF_UFNIRA"
"""Integers, reals and uninterpreted functions: ``exp`` is one, a name that logics with
transcendental functions reserve."""

Verdict = Literal["sat", "unsat", "unknown"]

_TOKEN = re.compile(r"\|[^|]*\||[^\s()|;]+")
_DECLARED = re.compile(r"^\(declare-fun ([^|\s]+) \(", re.MULTILINE)


@cache
def module() -> Any:
    """cvc5; raises ``UsageError`` if it is not installed."""
    try:
        return importlib.import_module("cvc5")
    except ImportError:
        raise UsageError(
            f"--both needs the solver cvc5, which is not installed: {install('both')}"
        ) from None


def version() -> str:
    """The name and the version of the solver; raises ``UsageError`` if it is not installed."""
    return f"cvc5 {module().__version__}"


def satisfiable(query: str, seconds: float) -> Verdict:
    """Whether the assertions of ``query`` can hold at once; ``unknown`` after ``seconds``, or if
    cvc5 does not take the text."""
    cvc5 = module()
    solver = cvc5.Solver()
    solver.setLogic(LOGIC)
    solver.setOption("tlimit-per", str(max(1, int(seconds * 1000))))
    parser = cvc5.InputParser(solver)
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, quoted(query), "query")
    symbols, said = parser.getSymbolManager(), ""
    try:
        while not (command := parser.nextCommand()).isNull():
            said += str(command.invoke(solver, symbols))
    except RuntimeError:  # what cvc5 raises for a text that it cannot read
        return "unknown"
    match said.split():
        case ["unsat"]:
            return "unsat"
        case ["sat"]:
            return "sat"
        case _:
            return "unknown"


def quoted(query: str) -> str:
    """``query`` with each declared name between bars: z3 prints ``x'`` and reserved words bare."""
    names = {match[1] for match in _DECLARED.finditer(query)}
    return _TOKEN.sub(lambda match: f"|{match[0]}|" if match[0] in names else match[0], query)
