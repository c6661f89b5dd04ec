"""A PTX instruction in the expanded and the lowered IR: one node for all rows of the table."""

from __future__ import annotations

from typing import ClassVar

from gemmgen.base.record import record
from gemmgen.ir.expr import Element, Expr, Var
from gemmgen.ir.instruction_table import INSTRUCTIONS, InstructionRow, Operands

FORMS: dict[str, type] = {
    **dict.fromkeys(("barrier", "global", "shared", "pointer", "tile"), Element),
    **dict.fromkeys(("array", "map"), Var),
}
"""Kinds of operands that are not any expression."""


class InstructionError(ValueError):
    """An instruction that no row describes."""


@record
class Instruction:
    """The instruction of the row ``name``, with an expression for each of the row's operands, and
    a value for each of its modifiers; None of those that have none.

    ``result`` is the variable that its result defines, if the row has one.  Threads for which
    ``predicate`` does not hold do not execute it; their result is false.
    """

    SYNTAX = "{name} {operands}"
    WORDS: ClassVar = INSTRUCTIONS

    name: str
    operands: tuple[Expr, ...] = ()
    modifiers: tuple[tuple[str, int | str | None], ...] = ()
    result: str = ""
    predicate: Expr | None = None

    def __post_init__(self) -> None:
        row = INSTRUCTIONS.get(self.name)
        if row is None:
            raise InstructionError(f"{self.name} is not an instruction")
        for (name, kind), operand in zip(self.described(), self.operands, strict=True):
            if kind in FORMS and not isinstance(operand, FORMS[kind]):
                raise InstructionError(f"{name} of {self.name} must be of kind {kind}")
        given = [name for name, _ in self.modifiers]
        if not set(row.modifiers) <= set(given) <= {*row.modifiers, *row.options}:
            wanted = ", ".join((*row.modifiers, *(f"{name} or not" for name in row.options)))
            raise InstructionError(f"the modifiers of {self.name} are {wanted or 'none'}")
        if bool(self.result) != bool(row.result):
            how = "needs a" if row.result else "has no"
            raise InstructionError(f"{self.name} {how} result")

    def described(self) -> Operands:
        """The name and the kind of each operand."""
        operands, at = self.row.operands, self.row.repeated
        more = len(self.operands) - len(operands)
        if at is not None and more >= -1:
            return (*operands[:at], *[operands[at]] * (more + 1), *operands[at + 1 :])
        if more:
            wanted = ", ".join(name for name, _ in operands) or "no operand"
            raise InstructionError(f"{self.name} takes {wanted}, not {len(self.operands)} operands")
        return operands

    def get(self, modifier: str) -> int | str | None:
        """The value of a modifier; None without it."""
        return next((value for name, value in self.modifiers if name == modifier), None)

    def has(self, modifier: str) -> bool:
        """Whether it has a modifier."""
        return any(name == modifier for name, _ in self.modifiers)

    @property
    def row(self) -> InstructionRow:
        return INSTRUCTIONS[self.name]


def instruction(
    name: str,
    *operands: Expr,
    result: str = "",
    predicate: Expr | None = None,
    **modifiers: int | str | bool | None,
) -> Instruction:
    """``Instruction`` with its operands as arguments, and modifiers: ``instruction("add", target,
    value, dtype="f32")``; True is one without a value, and it has none that is None or False."""
    given = tuple(
        (key, None if value is True else value)
        for key, value in modifiers.items()
        if value is not None and value is not False
    )
    return Instruction(name, operands, given, result, predicate)


def is_instruction(node: object, *names: str) -> bool:
    """Whether ``node`` is one of these instructions."""
    return isinstance(node, Instruction) and node.name in names
