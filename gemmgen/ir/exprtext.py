"""Expressions as text, with no bracket that could be left out: a schedule's, or exactly the
nodes."""

from __future__ import annotations

from gemmgen.ir.expr import Binary, Call, Element, Expr, Float, Int, Select, Unary, Var, Wide

_OR, _AND, _XOR, _COMPARE, _SHIFT, _SUM, _PRODUCT, _UNARY, _ATOM = range(1, 10)
LEVEL = {
    **{"||": _OR, "&&": _AND, "^": _XOR, "<<": _SHIFT, "+": _SUM, "-": _SUM},
    **dict.fromkeys(("<", "<=", ">", ">=", "==", "!="), _COMPARE),
    **dict.fromkeys(("*", "/", "%"), _PRODUCT),
}
"""How tightly a binary operator binds."""


def format_expression(expr: Expr) -> str:
    """``relu(acc + bias[n])``: the text that a schedule's parser reads as ``expr``."""
    return _text(expr, 0, exact=False)


def exact_text(expr: Expr, *, closed: bool = False) -> str:
    """The text that ``exprreader`` reads as ``expr``; ``closed``: no operator is outside brackets.

    Here 1 is an integer, 1.0 a number, 1.0f64 one in double precision, and ``wide(n)`` is ``n`` in
    64 bits.
    """
    return _text(expr, _ATOM if closed else 0, exact=True)


def _text(expr: Expr, outer: int, *, exact: bool) -> str:
    """``expr`` where an operation of level ``outer`` or more binds it tightly enough."""
    text, level = _bare(expr, exact=exact)
    return f"({text})" if level < outer else text


def _bare(expr: Expr, *, exact: bool) -> tuple[str, int]:
    match expr:
        case Int(value):
            return str(value), _ATOM if value >= 0 else _UNARY
        case Float(value, dtype):
            return _number(value, dtype, exact=exact), _ATOM if value >= 0 else _UNARY
        case Var(name):
            return name, _ATOM
        case Binary(op, left, right):
            level = LEVEL[op]
            # Comparisons don't chain, so neither side of one may be another.
            first = level + 1 if level == _COMPARE else level
            sides = _text(left, first, exact=exact), _text(right, level + 1, exact=exact)
            return f"{sides[0]} {op} {sides[1]}", level
        case Unary(op, operand):
            # -1 is a literal.
            outer = _ATOM + 1 if exact and isinstance(operand, Int | Float) else _UNARY
            return op + _text(operand, outer, exact=exact), _UNARY
        case Select(condition, yes, no):
            return f"where({_list((condition, yes, no), exact=exact)})", _ATOM
        case Call(function, arguments):
            return f"{function}({_list(arguments, exact=exact)})", _ATOM
        case Element(buffer, indices):
            return f"{buffer}[{_list(indices, exact=exact)}]", _ATOM
        case Wide(operand):
            return f"wide({_list((operand,), exact=exact)})", _ATOM


def _list(parts: tuple[Expr, ...], *, exact: bool) -> str:
    return ", ".join(_text(part, 0, exact=exact) for part in parts)


def _number(value: float, dtype: str, *, exact: bool) -> str:
    """The shortest decimal that reads back as ``value``; in a schedule, whole numbers without a
    point."""
    if not exact:
        return repr(value).removesuffix(".0")
    return repr(value) + ("f64" if dtype == "f64" else "")
