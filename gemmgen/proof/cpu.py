"""C2: the emitted text itself, run on this machine, compared with the expected bits.

Each of its accesses is checked while it runs (races, bounds, alignment, unwritten memory); some of
the largest calls only detect wrong values and writes outside the tensors.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from gemmgen.base.errors import CannotCheck
from gemmgen.base.source import counted
from gemmgen.calling.launches import Case
from gemmgen.ir.launch_shape import Shape
from gemmgen.pipeline import Emitted
from gemmgen.proof import launcher, verdicts
from gemmgen.proof.calls import Caller, landings_of, orders_of
from gemmgen.proof.cases import SPAN, cases, cases_of, not_crossed
from gemmgen.proof.outcome import Outcome, Subject, failed, passed, skipped
from gemmgen.sim import programs
from gemmgen.sim.declarations import check_declarations
from gemmgen.sim.failures import CompileFailure, KernelFailure, TextFailure
from gemmgen.sim.poisoned_memory import can_span
from gemmgen.sim.run import RUN_SECONDS, CompiledKernel
from gemmgen.sim.toolchain import require_gxx
from gemmgen.sim.widths import check_widths

LAYER = "C2"
MOST = 1 << 26
"""Multiply-adds above which a shape is left to a GPU."""

_NEAR = "; none past 2^31 elements, as this process cannot reserve the address space"


def check(subject: Subject) -> Outcome:
    """Runs the kernel at ragged shapes until the first wrong result."""
    emitted, small = subject.emitted, _small(subject)
    landings, orders = landings_of(emitted), orders_of(emitted)
    chosen = tuple(cases(small, landings, orders)) if small else cases_of(emitted, landings)
    near = not can_span(SPAN)
    if near:
        chosen = tuple(case for case in chosen if not case.far)
    try:
        require_gxx()
        complaint = verdicts.complaint_of(
            lambda: first_complaint(Caller(emitted), emitted.text, chosen),
            LAYER,
            programs.identity(),
            emitted.text,  # `repr(emitted)` does not have it
            emitted.interface,
            emitted.program,
            chosen,
        )
    except TextFailure as failure:
        return failed(LAYER, str(failure))
    except CompileFailure as failure:
        return failed(LAYER, f"g++ does not take the text: {failure}")
    except CannotCheck as missing:
        return skipped(LAYER, str(missing))
    if complaint is not None:
        return failed(LAYER, complaint)
    left = _left(subject) if small else _uncrossed(emitted, chosen)
    return passed(LAYER, _summary(chosen) + left + (_NEAR if near else ""))


def first_complaint(
    caller: Caller,
    text: str,
    chosen: Iterable[Case],
    *,
    warn: bool = True,
    seconds: float = RUN_SECONDS,
) -> str | None:
    """A sentence about the first call with a wrong result, or None.

    Each run is stopped after ``seconds``.  Raises ``CompileFailure`` if g++ refuses the text or
    (``warn``) warns, ``CannotCheck`` if this machine can't run kernels.
    """
    compiled: dict[bool, CompiledKernel] = {}
    check_declarations(text, caller.emitted.interface)
    check_widths(text, caller.emitted.interface)
    try:
        for case in chosen:
            if case.watched not in compiled:
                program = CompiledKernel(
                    text, caller.emitted.interface, checked=case.watched, warn=warn
                )
                is_first, compiled[case.watched] = not compiled, program
                wrong = launcher.complaint(caller.emitted, text, program) if is_first else None
                if wrong is not None:
                    return wrong
            try:
                complaint = caller.complaint(case, compiled[case.watched], seconds)
            except KernelFailure as failure:
                complaint = str(failure)
            if complaint is not None:
                return f"{case.text()}: {complaint}"
    finally:
        for program in compiled.values():
            program.close()
    return None


def _small(subject: Subject) -> tuple[Shape, ...]:
    """The given shapes that are small enough for a CPU."""
    return tuple(filter(is_small, subject.shapes))


def is_small(shape: Shape) -> bool:
    """Whether a given shape is small enough for a CPU."""
    return prod(shape) <= MOST


def _summary(chosen: tuple[Case, ...]) -> str:
    watched, far = sum(c.watched for c in chosen), sum(c.far for c in chosen)
    shapes = len({(case.shape, case.far) for case in chosen})
    past = f", {counted(far, 'run')} past 2^31 elements" if far else ""
    where = "" if watched == len(chosen) else f" in {watched} of them"
    runs = f"{counted(len(chosen), 'run')} of the text at {counted(shapes, 'shape')}"
    return f"{runs}{past}, every access watched{where}"


def _uncrossed(emitted: Emitted, chosen: tuple[Case, ...]) -> str:
    numbers = ", ".join(map(str, not_crossed(emitted, chosen)))
    return (
        f"; no extent crosses {numbers} in the text, since that takes too long" if numbers else ""
    )


def _left(subject: Subject) -> str:
    count = len(subject.shapes) - len(_small(subject))
    return f"; of those asked for, {count} is left to a GPU" if count else ""
