"""Expressions as C: parentheses are decided here alone, by precedence."""

from __future__ import annotations

import struct

from gemmgen.emit.line_breaks import INDEX, LAST, SOFT
from gemmgen.ir.expr import Binary, Call, Element, Expr, Float, Int, Select, Unary, Var, Wide

PRIMARY, PREFIX, CHOICE = 16, 15, 3
PRECEDENCE: dict[str, int] = {
    **dict.fromkeys(("*", "/", "%"), 13),
    **dict.fromkeys(("+", "-"), 12),
    "<<": 11,
    **dict.fromkeys(("<", "<=", ">", ">="), 10),
    **{"==": 9, "!=": 9, "^": 7, "&&": 5, "||": 4},
}
"""C++'s binary operators, the tighter the higher; all of them group from the left."""
_COMPARE = ("<", "<=", ">", ">=", "==", "!=")
_IN_PARENTHESES = frozenset(
    {
        *(pair for op in PRECEDENCE if op != "^" for pair in (("^", op), (op, "^"))),
        *(pair for op in PRECEDENCE if op != "<<" for pair in (("<<", op), (op, "<<"))),
        *(("||", "&&"), ("*", "/"), ("*", "%")),
        *((outer, inner) for outer in _COMPARE for inner in _COMPARE),
    }
)
"""Operators and those of their operands that readers (and compilers) want in parentheses, as in
``(a && b) || c`` and ``(a / b) * c``."""

C_NAMES = {
    "fmaf": "fmaf",
    "exp": "expf",
    "tanh": "tanhf",
    "erf": "erff",
    "sqrt": "sqrtf",
    "abs": "fabsf",
    "round": "rintf",
    "float": "static_cast<float>",
    "hilbert": "gg_hilbert",
    "shuffle_xor": "gg_shuffle_xor",
    "shuffle_xor_f64": "gg_shuffle_xor",
    "shuffle_xor_i32": "gg_shuffle_xor",
    "uniform": "gg_uniform",
    "mad": "gg_mad",
    "fma": "fma",
    "exp_f64": "exp",
    "tanh_f64": "tanh",
    "erf_f64": "erf",
    "sqrt_f64": "sqrt",
    "abs_f64": "fabs",
    "round_f64": "rint",
    "min_f64": "fmin",
    "max_f64": "fmax",
    "double": "static_cast<double>",
    "from_f16": "gg_from_f16",
    "to_f16": "gg_to_f16",
    "from_bf16": "gg_from_bf16",
    "to_bf16": "gg_to_bf16",
    **{
        f"{way}_{dtype}": f"gg_{way}_{dtype}"
        for way in ("from", "to")
        for dtype in ("e4m3", "e5m2")
    },
    "to_i8": "gg_to_i8",
    "is_finite": "gg_is_finite",
    "row_scale": "gg_row_scale",
    "largest": "fmaxf",
    "from_tf32": "gg_from_tf32",
    **{name: name for name in ("relu", "sigmoid", "silu", "gelu", "gelu_tanh", "clamp")},
    "address": "reinterpret_cast<size_t>",
    "dim3": "dim3",
}
"""The C names of the functions that lowered code, launchers and host programs call."""


def c_text(expr: Expr) -> str:
    """``expr`` as C, with no parentheses but those it needs (and those a reader wants).

    It has the marks of ``layout``, where a long line may be broken.
    """
    return _print(expr)[0]


def factor(expr: Expr) -> str:
    """``expr`` as C, among others that a template multiplies."""
    return _within(expr, PREFIX)


def increment(variable: str, step: Expr) -> str:
    """``++k``, or ``k += 4``."""
    return f"++{variable}" if step == Int(1) else f"{variable} += {c_text(step)}"


def _print(expr: Expr) -> tuple[str, int]:
    """The text, and how tightly its outermost operator binds."""
    if isinstance(expr, Var):  # most are names and their sums
        return expr.name, PRIMARY
    if isinstance(expr, Binary):
        return _binary(expr)
    match expr:
        case Int(value):
            return str(value), PRIMARY if value >= 0 else PREFIX
        case Float(value, dtype):
            text = c_float(value) if dtype == "f32" else c_double(value)
            return text, PRIMARY if value >= 0 else PREFIX
        case Element(buffer, indices):
            return buffer + INDEX.join([f"[{_print(i)[0]}]" for i in indices]), PRIMARY
        case Unary(op, operand):
            inner = _within(operand, PREFIX)
            return (f"{op}({inner})" if inner.startswith(op) else op + inner), PREFIX
        case Wide(Int(value)):
            return f"{value}LL", PRIMARY if value >= 0 else PREFIX
        case Wide(operand):
            return f"(long long){_within(operand, PREFIX)}", PREFIX
        case Select(condition, yes, no):
            chosen = f"{SOFT}{_within(yes, CHOICE + 1)} : {SOFT}{_within(no, CHOICE)}"
            return f"{_within(condition, CHOICE + 1)} ? {chosen}", CHOICE
        case Call(function, arguments):
            return f"{C_NAMES[function]}({f', {SOFT}'.join(map(c_text, arguments))})", PRIMARY


def _within(expr: Expr, least: int) -> str:
    text, binds = _print(expr)
    return text if binds >= least else f"({text})"


def _binary(expr: Binary) -> tuple[str, int]:
    own = PRECEDENCE[expr.op]
    left = _operand(expr, expr.left, own)
    right = _operand(expr, expr.right, own + 1)
    return f"{left} {expr.op} {LAST}{right}", own


def _operand(parent: Binary, expr: Expr, least: int) -> str:
    """An operand, in parentheses where it needs or is to have them."""
    if isinstance(expr, Binary) and (parent.op, expr.op) in _IN_PARENTHESES:
        return f"({c_text(expr)})"
    return _within(expr, least)


def c_float(value: float) -> str:
    """A float literal: the shortest text that reads back as the same single-precision number."""
    single = struct.unpack("f", struct.pack("f", value))[0]
    candidates = (f"{single:.{digits}g}" for digits in range(1, 10))
    text = next(
        t for t in candidates if struct.unpack("f", struct.pack("f", float(t)))[0] == single
    )
    return _real(text) + "f"


def c_double(value: float) -> str:
    """A double literal: the shortest text that reads back as the same number."""
    return _real(next(t for d in range(1, 18) if float(t := f"{value:.{d}g}") == value))


def _real(text: str) -> str:
    """A number's text as C takes it for no integer."""
    if "e" not in text and "." not in text:
        text += ".0"
    return text.replace("e+", "e")
