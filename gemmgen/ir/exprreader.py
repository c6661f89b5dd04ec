"""Expressions read from the text that ``exprtext.exact_text`` gives, by precedence climbing."""

from __future__ import annotations

import re
from typing import cast

from gemmgen.ir import expr
from gemmgen.ir.exprtext import LEVEL
from gemmgen.ir.textcursor import NAME, Cursor

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?:f64)?(?![A-Za-z0-9_.])")
_OPERATOR = re.compile(r"\|\||&&|[<>=!]=|<<|[<>]|[-+*/%^](?!=)")


def read_expression(cursor: Cursor, least: int = 0) -> expr.Expr:
    """The expression at ``cursor``, up to an operator that binds less than ``least``."""
    left = read_operand(cursor)
    while (found := _OPERATOR.match(cursor.text, cursor.at)) and LEVEL[found[0]] >= least:
        op = cast(expr.BinaryOp, cursor.match(_OPERATOR))
        left = expr.Binary(op, left, read_expression(cursor, LEVEL[op] + 1))
    return left


def read_operand(cursor: Cursor) -> expr.Expr:
    """A number, a name, a call, an element, a bracket, or one of these after ``-`` or ``!``."""
    if (number := cursor.match(_NUMBER)) is not None:
        return _literal(number)
    if cursor.has("-"):
        return expr.Unary("-", read_operand(cursor))
    if cursor.has("!"):
        return expr.Unary("!", read_operand(cursor))
    if cursor.has("("):
        inner = read_expression(cursor)
        cursor.expect(")")
        return inner
    at, name = cursor.at, cursor.match(NAME)
    if name is None:
        cursor.fail("expected an expression")
    if cursor.has("["):
        return expr.Element(name, cursor.items(read_expression, "]"))
    return _called(cursor, name, at) if cursor.has("(") else expr.Var(name)


def _literal(number: str) -> expr.Expr:
    if number.endswith("f64"):
        return expr.Float(float(number.removesuffix("f64")), "f64")
    return expr.Float(float(number)) if re.search(r"[.e]", number) else expr.Int(int(number))


def _called(cursor: Cursor, function: str, at: int) -> expr.Expr:
    arguments = cursor.items(read_expression, ")")
    match function, arguments:
        case "where", (condition, yes, no):
            return expr.Select(condition, yes, no)
        case "wide", (operand,):
            return expr.Wide(operand)
        case ("where" | "wide"), _:
            cursor.fail(f"{function} takes another number of arguments", at)
        case _:
            return expr.Call(function, arguments)
