"""The base of passes: reading the statements of a directive, and their spans for refusals."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar, Protocol

from gemmgen.base.record import record
from gemmgen.base.source import Span
from gemmgen.ir.nodes import Program
from gemmgen.schedule.formatting import format_directive
from gemmgen.schedule.model import NOWHERE, Directive, Operand, Schedule
from gemmgen.schedule.spec import DirectiveSpec


class Pass(Protocol):
    """One rung: a directive as a value, and its rewrite.

    ``AFTER`` names the directives that this one depends on: if one of those was refused, this one
    is not applied, so that a user sees causes without consequences.
    """

    SPEC: ClassVar[DirectiveSpec]
    AFTER: ClassVar[tuple[str, ...]]

    def apply(self, program: Program) -> Program:
        """``program`` with this rung; raises ``Refusal`` if it is illegal."""
        ...


@record
class OperandArgument:
    """A statement's argument for one operand."""

    operand: Operand
    value: int
    origin: str
    span: Span = field(default=NOWHERE, compare=False)
    """The span of the value (or of the operand without a value)."""


@record
class Stated:
    """The canonical statements of one directive name, in a schedule."""

    statements: tuple[Directive, ...]

    @staticmethod
    def of(schedule: Schedule, name: str) -> Stated | None:
        """The statements of ``name``, or None if the schedule has none."""
        found = tuple(d for d in schedule.directives if d.name == name)
        return Stated(found) if found else None

    @property
    def origin(self) -> str:
        """The canonical text of a directive with one statement."""
        return format_directive(self.statements[0])

    @property
    def span(self) -> Span:
        return self.statements[0].span

    def integer(self, name: str) -> int | None:
        """The value of an integer argument of a directive with one statement."""
        for argument in self.statements[0].arguments:
            if argument.name == name and isinstance(argument.value, int):
                return argument.value
        return None

    def word(self, name: str) -> str | None:
        """The value of a word argument of a directive with one statement."""
        for argument in self.statements[0].arguments:
            if argument.name == name and isinstance(argument.value, str):
                return argument.value
        return None

    def span_of(self, name: str) -> Span:
        """The span of argument ``name``; of the directive if it is left out."""
        for argument in self.statements[0].arguments:
            if argument.name == name:
                return argument.span
        return self.span

    def facts(self, argument: str, default: int = 0) -> tuple[OperandArgument, ...]:
        """One fact per operand: the value of ``argument``, or ``default`` if it is left out."""
        found: list[OperandArgument] = []
        for statement in self.statements:
            given = (a.value for a in statement.arguments if a.name == argument)
            value = next((v for v in given if isinstance(v, int)), default)
            origin = format_directive(statement)
            for operand in statement.operands:
                span = operand.value_span if operand.value_span != NOWHERE else operand.span
                found.append(OperandArgument(operand, value, origin, span))
        return tuple(found)
