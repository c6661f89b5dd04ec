"""The base of passes: the statements of a directive, and what several refusals share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from math import gcd
from typing import ClassVar, Protocol

from gemmgen.base.errors import Refusal
from gemmgen.base.record import record
from gemmgen.base.source import Span
from gemmgen.ir.buffers import Buffer
from gemmgen.ir.edit import pipeline_of, tile_of
from gemmgen.ir.nodes import Kernel, Program
from gemmgen.schedule.formatting import format_directive, format_sizes
from gemmgen.schedule.model import NOWHERE, Directive, Operand
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

    @property
    def tensor(self) -> str:
        return self.operand.tensor


@record
class Stated:
    """The canonical statements of one directive name, in a schedule."""

    statements: tuple[Directive, ...]

    @staticmethod
    def of(directives: tuple[Directive, ...], name: str) -> Stated | None:
        """The statements of ``name``, or None if there are none."""
        found = tuple(d for d in directives if d.name == name)
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
        found = self.statements[0].argument(name)
        return found.value if found and isinstance(found.value, int) else None

    def word(self, name: str) -> str | None:
        """The value of a word argument of a directive with one statement."""
        found = self.statements[0].argument(name)
        return found.value if found and isinstance(found.value, str) else None

    def sizes(self, letters: Iterable[str]) -> tuple[tuple[str, int], ...]:
        """The integer arguments that are named after ``letters``; 1 if one is left out."""
        return tuple((letter, self.integer(letter) or 1) for letter in letters)

    def span_of(self, name: str) -> Span:
        """The span of argument ``name``; of the directive if it is left out."""
        found = self.statements[0].argument(name)
        return found.span if found else self.span

    def facts(self, name: str, default: int = 0) -> tuple[OperandArgument, ...]:
        """One fact per operand: the value of argument ``name``, or ``default`` if it is left
        out."""
        found: list[OperandArgument] = []
        for statement in self.statements:
            value = Stated((statement,)).integer(name)
            value, origin = default if value is None else value, format_directive(statement)
            for operand in statement.operands:
                span = operand.value_span if operand.value_span != NOWHERE else operand.span
                found.append(OperandArgument(operand, value, origin, span))
        return tuple(found)


def shared_tile(kernel: Kernel, directive: str, operand: Operand, hint: str) -> Buffer:
    """The operand's tile in shared memory; refuses ``directive`` if there is none."""
    tensor = operand.tensor
    tile = tile_of(kernel, tensor)
    if tile is None:
        message = f"{directive} {tensor}: {tensor} is not in shared memory"
        raise Refusal(message, at=operand.span, hint=hint)
    return tile


def tile_line(kernel: Kernel, k: str, step: int) -> str:
    """The kernel's ``tile`` with steps of ``step`` along ``k``, for hints."""
    return f"tile {format_sizes((*kernel.work.tile, (k, step)))}"


def tile_with(kernel: Kernel, letter: str, size: int) -> str:
    """The kernel's ``tile`` with another extent along ``letter``, for hints."""
    pipeline = pipeline_of(kernel)
    step = {pipeline.letter: pipeline.step} if pipeline else {}
    return f"tile {format_sizes((dict(kernel.work.tile) | step | {letter: size}).items())}"


def micro_tile_line(kernel: Kernel) -> str:
    """A ``register_block`` that divides the kernel's tile, for hints."""
    return (
        f"register_block {format_sizes((a.letter, gcd(a.extent, 8)) for a in kernel.spread.axes)}"
    )
