"""A PTX instruction in the expanded and the lowered IR: one node for all rows of the table."""

from __future__ import annotations

from typing import ClassVar

from gemmgen.base.record import record
from gemmgen.ir.expr import Element, Expr, Var
from gemmgen.ir.instruction_table import INSTRUCTIONS, InstructionRow

FORMS: dict[str, type] = {"barrier": Element, "array": Var}
"""Kinds of operands that are not any expression."""


class InstructionError(ValueError):
    """An instruction that no row describes."""


@record
class Instruction:
    """The instruction of the row ``name``, with an expression for each of the row's operands.

    ``result`` is the variable that its result defines, if the row has one.  Threads for which
    ``predicate`` does not hold do not execute it; their result is false.
    """

    SYNTAX = "{name} {operands}"
    WORDS: ClassVar = INSTRUCTIONS

    name: str
    operands: tuple[Expr, ...] = ()
    result: str = ""
    predicate: Expr | None = None

    def __post_init__(self) -> None:
        row = INSTRUCTIONS.get(self.name)
        if row is None:
            raise InstructionError(f"{self.name} is not an instruction")
        if len(self.operands) != len(row.operands):
            wanted = ", ".join(name for name, _ in row.operands) or "no operand"
            raise InstructionError(f"{self.name} takes {wanted}, not {len(self.operands)} operands")
        for (name, kind), operand in zip(row.operands, self.operands, strict=True):
            if kind in FORMS and not isinstance(operand, FORMS[kind]):
                raise InstructionError(f"{name} of {self.name} must be of kind {kind}")
        if bool(self.result) != bool(row.result):
            how = "needs a" if row.result else "has no"
            raise InstructionError(f"{self.name} {how} result")

    @property
    def row(self) -> InstructionRow:
        return INSTRUCTIONS[self.name]


def instruction(
    name: str, *operands: Expr, result: str = "", predicate: Expr | None = None
) -> Instruction:
    """``Instruction`` with its operands as arguments: ``instruction("wait_group", Int(1))``."""
    return Instruction(name, operands, result, predicate)


def is_instruction(node: object, *names: str) -> bool:
    """Whether ``node`` is one of these instructions."""
    return isinstance(node, Instruction) and node.name in names
