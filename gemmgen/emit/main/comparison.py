"""The expected results of the host program: the epilogue in double precision, and its rounding."""

from __future__ import annotations

import textwrap
from functools import partial

from gemmgen.emit.ctext import c_double, c_text
from gemmgen.emit.line_breaks import WIDTH
from gemmgen.emit.main.layout import paragraph, place
from gemmgen.emit.printing import printed
from gemmgen.emit.views import View
from gemmgen.ir.dtypes import DTYPES, INTEGERS, RAW, ROUNDED, DType
from gemmgen.ir.expr import Binary, Call, Element, Expr, Float, Var, children, transform, walk
from gemmgen.ir.exprtext import format_expression
from gemmgen.ir.interface import Interface
from gemmgen.ir.problem import Problem

_LIBRARY = ("exp", "tanh", "erf", "sqrt", "abs", "round")
_OWN = ("relu", "sigmoid", "silu", "gelu", "gelu_tanh", "clamp")
_PARTIAL = ("exp", "sqrt")
"""Functions whose results may be not numbers, or beyond a type's."""


def epilogue_view(problem: Problem) -> View:
    """What ``comparison.j2`` sees of the epilogue."""
    called = {part.function for part in walk(problem.epilogue) if isinstance(part, Call)}
    greatest = DTYPES[problem.c.dtype].greatest
    saturated = _saturated(problem.c.dtype)
    formula = f"{problem.c.text} = {format_expression(problem.epilogue)}"
    return {
        "formula": textwrap.wrap(formula, WIDTH - len("// ")),
        "functions": [printed(f"main/functions/{name}.j2", {}) for name in _OWN if name in called],
        "names": names(problem.epilogue),
        "expression": c_text(transform(problem.epilogue, partial(_in_double, problem.accumulate))),
        "edges": ([c_double(greatest)] if _is_partial(problem.epilogue) and not saturated else []),
        "saturated": saturated,
        "unbounded": range(not saturated),
    }


def _saturated(dtype: DType) -> list[View]:
    """What ``comparison.j2`` sees of a type whose results saturate: its ends, and NaN in it."""
    traits = DTYPES[dtype]
    if not traits.saturates:
        return []
    ends = {"least": c_double(traits.least), "greatest": c_double(traits.greatest)}
    return [{**ends, "nan": "0.0" if dtype in INTEGERS else "value", "dtype": dtype}]


def names(epilogue: Expr) -> list[str]:
    """What the epilogue is computed from: ``acc``, scalars, letters, and elements by their
    tensors' names."""
    return list(dict.fromkeys(("acc", *_outside(epilogue))))


def _outside(expr: Expr) -> list[str]:
    """The names in ``expr`` but for those of an element's indices."""
    match expr:
        case Var(name):
            return [name]
        case Element(buffer, _):
            return [buffer]
        case _:
            return [name for part in children(expr) for name in _outside(part)]


def _in_double(acc_type: DType, expr: Expr) -> Expr | None:
    """A part of the epilogue as C++ computes it in double precision, from the kernel's numbers."""
    match expr:
        case Float(value) if acc_type == "f64":
            return Float(value, "f64")
        case Element(buffer, _):
            return Var(buffer)
        case Call(function, arguments) if function in (*_LIBRARY, "min", "max"):
            return Call(
                f"{function}_f64",
                tuple(transform(a, partial(_in_double, acc_type)) for a in arguments),
            )
        case _:
            return None


def _is_partial(epilogue: Expr) -> bool:
    return any(
        (isinstance(part, Call) and part.function in _PARTIAL)
        or (isinstance(part, Binary) and part.op == "/")
        for part in walk(epilogue)
    )


def wide(problem: Problem) -> str:
    """What a tensor's numbers are converted to: all of one program have it in common."""
    return "double" if problem.accumulate in ("f64", "i32") else "float"


def rounding_view(interface: Interface, problem: Problem, depth: str) -> View:
    """How far a sum, and a result, may be off; the bounds are those of ``gpu.compare``."""
    if problem.accumulate in INTEGERS:
        return _integer_view(problem)
    acc, c = DTYPES[problem.accumulate].digits, DTYPES[problem.c.dtype].digits
    truncated, fraction = (*RAW, *ROUNDED), interface.arithmetic.fraction
    tensor_cores = problem.a.dtype in truncated and problem.b.dtype in truncated
    digits = acc if fraction is None else fraction + 1
    rule = interface.arithmetic.rule
    share = 2 if fraction is None or rule is None else rule.group // 4  # of sqrt(K), below
    why: View = {
        "terms": f"max(16, sqrt(K) / {share})" if tensor_cores else "16",
        "digits": digits,
        "truncated": [share] if tensor_cores and fraction is None else [],
        "few_bits": [] if fraction is None else [{"bits": fraction, "share": share}],
    }
    rounded = f"16 * 0x1p-{acc}"
    stored = [f"2 * 0x1p-{c}"] if problem.c.dtype != problem.accumulate else []
    units: View = {"depth": depth, "share": share}
    terms = printed("main/units.j2", units) if tensor_cores else "16"
    return {
        "why": paragraph("main/rounded.j2", why),
        "rounding": f"({' + '.join([rounded, *stored])})" if stored else rounded,
        "half": (),
        "slack": f"2 * {terms} * 0x1p-{digits} * {depth} / 4",
    }


def _integer_view(problem: Problem) -> View:
    """Accumulators are exact; the epilogue rounds in float, or not at all where C is i32."""
    dtype, whole = problem.c.dtype, problem.c.dtype == "i32"
    stored = DTYPES[dtype].digits
    terms = ["16 * 0x1p-24", *([f"2 * 0x1p-{stored}"] if stored not in (0, 24) else [])]
    why: View = {
        "whole": range(whole),
        "rounded": range(not whole),
        "nearest": range(dtype == "i8"),
    }
    return {
        "why": paragraph("main/integers.j2", why),
        "rounding": "0" if whole else f"({' + '.join(terms)})" if terms[1:] else terms[0],
        "half": range(dtype == "i8"),
        "slack": "0.0",
    }


def arguments(interface: Interface, problem: Problem) -> list[str]:
    """The values of ``names`` within loops over C's letters; the index of its element is ``at``."""
    places = {param.name: place(interface, param) for param in interface.tensors}
    places[problem.c.name] = "at"
    return [
        f"{name}[{places[name]}]" if name in places else name for name in names(problem.epilogue)
    ]
