"""Programs with one change each: an operator, a number, a name, a choice or a statement."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any, cast

from gemmgen.base.record import record
from gemmgen.ir.control import Assign, Break, If
from gemmgen.ir.expr import Binary, Call, Element, Float, Int, Select, Unary, Var, Wide
from gemmgen.ir.exprtext import exact_text
from gemmgen.ir.instruction import Instruction
from gemmgen.ir.lowered import LoweredProgram
from gemmgen.ir.text import print_ir
from gemmgen.ir.thread_code import Leave, Move

OPERATORS = {
    "<": ("<=",),
    "<=": ("<",),
    ">": (">=",),
    ">=": (">",),
    "==": ("!=",),
    "!=": ("==",),
    "&&": ("||",),
    "||": ("&&",),
    "+": ("-",),
    "-": ("+",),
    "*": ("+",),
    "/": ("%",),
    "%": ("/",),
    "^": ("+",),
}
NAMES = (
    ("lda", "ldb"),
    ("ldb", "ldc"),
    ("m", "n"),
    ("n", "k"),
    ("k", "m"),
    ("M", "N"),
    ("N", "K"),
    ("K", "M"),
    ("BM", "BN"),
    ("BN", "BK"),
    ("BK", "BM"),
    ("A_m", "A_k"),
    ("B_k", "B_n"),
    ("reg_m", "reg_n"),
    ("thread_m", "thread_n"),
    ("tile_m", "tile_n"),
    ("tile_k", "next_k"),
    ("stage", "next_stage"),
    ("LM", "LN"),
    ("blocks_m", "blocks_n"),
    ("group_rows", "full_group"),
)
OTHERS: dict[str, tuple[str, ...]] = {}
for one, two in NAMES:
    OTHERS[one] = (*OTHERS.get(one, ()), two)
    OTHERS[two] = (*OTHERS.get(two, ()), one)
EXPRESSIONS = (Int, Float, Var, Binary, Unary, Select, Call, Element, Wide)
STATEMENTS = (Assign, Move, Leave, Break, Instruction)


@record
class LoweredMutant:
    """``program`` differs in what ``change`` says."""

    change: str
    program: LoweredProgram


def mutants(program: LoweredProgram) -> Iterator[LoweredMutant]:
    """All mutants of the body of the first kernel."""
    kernel = program.kernels[0]
    for change, body in _variants(kernel.body):
        own = replace(kernel, body=body)
        yield LoweredMutant(change, replace(program, kernels=(own, *program.kernels[1:])))


def _variants(tree: Any) -> Iterator[tuple[str, Any]]:
    """``tree`` with one change, wherever there is one."""
    yield from _changes(tree)
    if isinstance(tree, tuple):
        parts = cast("tuple[Any, ...]", tree)
        for i, part in enumerate(parts):
            if isinstance(part, STATEMENTS):
                yield f"without {_shown(part)}", (*parts[:i], *parts[i + 1 :])
            for change, other in _variants(part):
                yield change, (*parts[:i], other, *parts[i + 1 :])
    elif is_dataclass(tree):
        for field in fields(tree):
            part = getattr(tree, field.name)
            if field.name != "origins" and (isinstance(part, tuple) or is_dataclass(part)):
                for change, other in _variants(part):
                    yield change, replace(cast(Any, tree), **{field.name: other})


def _changes(tree: Any) -> Iterator[tuple[str, Any]]:
    match tree:
        case Binary(op, left, right):
            for other in OPERATORS.get(op, ()):
                yield f"{_shown(tree)}: {other}", Binary(cast(Any, other), left, right)
        case Int(value):
            for other in (value + 1, value - 1):
                if other >= 0:
                    yield f"{value}: {other}", Int(other)
        case Var(name):
            for other in OTHERS.get(name, ()):
                yield f"{name}: {other}", Var(other)
        case Select(_, yes, _):
            yield f"{_shown(tree)}: always", yes
        case Call("fmaf", (a, b, c)):
            yield f"{_shown(tree)}: other sum", Call("fmaf", (a, c, b))
            yield f"{_shown(tree)}: no product", c
        case If(_, body, ()):
            yield f"if {_shown(tree.condition)}: always", If(Binary("<", Int(0), Int(1)), body)
        case Wide(operand):
            yield f"{_shown(tree)}: 32 bits", operand
        case _:
            return


def _shown(node: object) -> str:
    text = exact_text(node) if isinstance(node, EXPRESSIONS) else print_ir(cast(Any, node))
    return " ".join(text.split())[:80]
