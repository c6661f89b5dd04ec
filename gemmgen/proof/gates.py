"""``require registers`` and ``require spills``, which are checked on the compiled kernel.
``require shared`` and ``require threads`` are checked with the schedule."""

from __future__ import annotations

from gemmgen.base.errors import CannotCheck, Mistake, ScheduleError
from gemmgen.gpu.compiler import Report, reported
from gemmgen.limits.device_limits import satisfies
from gemmgen.pipeline import Emitted
from gemmgen.schedule.model import Require, Schedule

QUANTITIES = ("registers", "spills")


def gates_of(schedule: Schedule) -> tuple[Require, ...]:
    """The ``require`` lines that need a compiler."""
    return tuple(r for r in schedule.requires if r.quantity in QUANTITIES)


def spelled(gates: tuple[Require, ...]) -> str:
    """``require registers <= 128, require spills == 0``."""
    return ", ".join(f"require {r.quantity} {r.op} {r.limit}" for r in gates)


def check_gates(emitted: Emitted) -> None:
    """Compiles for the schedule's target if it has such lines.  Raises ``ScheduleError`` for those
    that do not hold, ``CannotCheck`` if there is no compiler."""
    gates = gates_of(emitted.schedule)
    if not gates:
        return
    try:
        report = reported(emitted.text, emitted.target)
    except CannotCheck as missing:
        raise CannotCheck(f"{spelled(gates)}: not evaluated: {missing}") from None
    broken = mistakes(emitted, report)
    if broken:
        raise ScheduleError(emitted.schedule.source, broken)


def mistakes(emitted: Emitted, report: Report) -> tuple[Mistake, ...]:
    """The ``require`` lines that the kernel, compiled for its target, does not meet."""
    values = {"registers": report.registers, "spills": report.spills}
    return tuple(
        Mistake(
            f"{spelled((gate,))} does not hold: {gate.quantity} = {values[gate.quantity]} "
            f"on {emitted.target}",
            gate.span,
            "a smaller register_block or tile, or change the requirement",
            (f"compiled by {report.compiler}; spills are {spills_of(report)}",),
        )
        for gate in gates_of(emitted.schedule)
        if not satisfies(gate, values[gate.quantity])
    )


def spills_of(report: Report) -> str:
    """``28 bytes of stores + 28 bytes of loads``."""
    return f"{report.spill_stores} bytes of stores + {report.spill_loads} bytes of loads"
