"""A compiled schedule and what its analysis needs."""

from __future__ import annotations

from collections.abc import Mapping

from gemmgen.base.record import record
from gemmgen.ir.lowered import LoweredKernel
from gemmgen.ir.nodes import Program
from gemmgen.pipeline import Emitted, compile_schedule
from gemmgen.schedule.model import Schedule

Values = Mapping[str, int | float]
"""The arguments of a launch by their names."""


@record
class AnalyzedKernel:
    """The emitted text, the program after the last pass, and one thread's code."""

    emitted: Emitted
    program: Program
    lowered: LoweredKernel

    @staticmethod
    def of(emitted: Emitted) -> AnalyzedKernel:
        (lowered,) = emitted.lowered.kernels
        return AnalyzedKernel(emitted, emitted.program, lowered)


def compile_kernel(schedule: Schedule) -> AnalyzedKernel:
    """Compile ``schedule``.  Raises ``ScheduleError`` for a mistake in it."""
    return AnalyzedKernel.of(compile_schedule(schedule))
