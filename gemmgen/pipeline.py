"""The whole compiler, in the order in which things happen; a single stage is imported from here."""

from __future__ import annotations

from dataclasses import field
from functools import lru_cache

from gemmgen.base.errors import Mistakes
from gemmgen.base.record import record
from gemmgen.base.source import Source
from gemmgen.emit import emit, names_of
from gemmgen.emit.formula import formula_comment
from gemmgen.expand import expand
from gemmgen.ir.interface import Interface
from gemmgen.ir.lowered import LoweredProgram
from gemmgen.ir.nodes import Program
from gemmgen.ir.validate import verify
from gemmgen.language import parse_schedule
from gemmgen.limits.box_addresses import check_box_addresses
from gemmgen.limits.collisions import check_buffers, check_identifiers
from gemmgen.limits.device_limits import check_limits
from gemmgen.lower import lower
from gemmgen.passes.build import build
from gemmgen.passes.ladder import passes_of
from gemmgen.schedule.formatting import format_schedule
from gemmgen.schedule.model import Schedule


@record
class Step:
    """The program after one pass, that of ``directive`` ("gemm": the naive program)."""

    directive: str
    program: Program


@record
class Emitted:
    """A kernel's text and interface, the result of its schedule's passes, and that lowered."""

    name: str
    text: str
    interface: Interface
    target: str
    schedule: Schedule
    program: Program = field(repr=False)
    lowered: LoweredProgram = field(repr=False, compare=False)

    def __repr__(self) -> str:
        return f"<Emitted {self.name} for {self.target}: {self.text.count(chr(10))} lines>"


def compile_source(source: Source, settings: tuple[tuple[str, int], ...] = ()) -> Emitted:
    """A ``.sched`` text to a CUDA C kernel; raises ``ScheduleError`` with all of its mistakes."""
    return compile_schedule(parse_schedule(source, settings))


_KEPT = 128
"""Kernels that a process keeps: searches and reports compile one schedule several times."""


def compile_schedule(schedule: Schedule) -> Emitted:
    """A schedule to a CUDA C kernel."""
    return _compiled(schedule, schedule.source)


@lru_cache(_KEPT)
def _compiled(schedule: Schedule, _source: Source) -> Emitted:
    """Schedules are equal whatever text they are from, but a kernel keeps its own."""
    program = rewrite(schedule)[-1].program
    lowered = make_concrete(program)
    check_limits(schedule, program, kernel := lowered.kernels[0])
    check_box_addresses(schedule, kernel)
    if schedule.same_bits is not None:
        from gemmgen.summation.same_bits import check_same_bits  # few schedules need it

        check_same_bits(schedule, program, kernel)
    text = emit(kernel, formula_comment(program), format_schedule(schedule))
    check_identifiers(schedule, names_of(text).repeated)
    names = schedule.kernel, text, kernel.interface, schedule.target
    return Emitted(*names, schedule, program, lowered)


def rewrite(schedule: Schedule) -> tuple[Step, ...]:
    """The naive program, then the program after each pass, in the order of the passes."""
    mistakes, refused, steps = Mistakes(schedule.source), set[str](), list[Step]()
    with mistakes.caught():
        steps.append(Step("gemm", build(schedule)))
    mistakes.check()
    for rung in passes_of(schedule):
        if refused.intersection(rung.AFTER):
            continue
        refused.add(rung.SPEC.name)
        with mistakes.caught(schedule.span_of):
            program = rung.apply(steps[-1].program)
            check_buffers(schedule, program)
            verify(program)
            steps.append(Step(rung.SPEC.name, program))
            refused.remove(rung.SPEC.name)
    mistakes.check()
    return tuple(steps)


def make_concrete(program: Program) -> LoweredProgram:
    """Time made explicit, then one thread's code."""
    return lower(expand(program))
