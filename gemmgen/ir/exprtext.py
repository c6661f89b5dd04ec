"""Epilogue expressions as text, with no bracket that could be left out."""

from __future__ import annotations

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
    Wide,
)

_OR, _AND, _COMPARE, _SUM, _PRODUCT, _UNARY, _ATOM = range(1, 8)
_LEVEL = {
    "||": _OR,
    "&&": _AND,
    "+": _SUM,
    "-": _SUM,
    "*": _PRODUCT,
    "/": _PRODUCT,
    "%": _PRODUCT,
}


def format_expression(expr: Expr) -> str:
    """The text that parses back to ``expr``: ``relu(acc + bias[n])``."""
    return _text(expr, 0)


def _text(expr: Expr, outer: int) -> str:
    """``expr`` where an operation of level ``outer`` or more binds it tightly enough."""
    text, level = _bare(expr)
    return f"({text})" if level < outer else text


def _bare(expr: Expr) -> tuple[str, int]:
    match expr:
        case Int(value):
            return str(value), _ATOM if value >= 0 else _UNARY
        case Float(value):
            return _number(value), _ATOM if value >= 0 else _UNARY
        case Var(name):
            return name, _ATOM
        case Binary(op, left, right):
            level = _LEVEL.get(op, _COMPARE)
            # Comparisons don't chain, so neither side of one may be another.
            first = level + 1 if level == _COMPARE else level
            return f"{_text(left, first)} {op} {_text(right, level + 1)}", level
        case Unary(op, operand):
            return op + _text(operand, _UNARY), _UNARY
        case Select(condition, yes, no):
            return _call("where", (condition, yes, no)), _ATOM
        case Call(function, arguments):
            return _call(function, arguments), _ATOM
        case Element(buffer, indices):
            return f"{buffer}[{_list(indices)}]", _ATOM
        case Wide(operand):
            return _bare(operand)


def _call(function: str, arguments: tuple[Expr, ...]) -> str:
    return f"{function}({_list(arguments)})"


def _list(parts: tuple[Expr, ...]) -> str:
    return ", ".join(_text(part, 0) for part in parts)


def _number(value: float) -> str:
    """The shortest decimal that reads back as ``value``; whole numbers stand without a point."""
    return repr(value).removesuffix(".0")
