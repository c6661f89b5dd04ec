"""The test of one schedule: its text, its meaning, its kernel on the CPU, and a compiler."""

from __future__ import annotations

import contextlib
import math
import time
import traceback
from collections.abc import Generator
from dataclasses import field, replace

from gemmgen.base.errors import CannotCheck, GemmgenError, ScheduleError
from gemmgen.base.record import record
from gemmgen.base.source import Source
from gemmgen.calling.launches import Case
from gemmgen.fuzz.dice import Dice
from gemmgen.fuzz.factors import Plan, plan_of
from gemmgen.fuzz.trial_calls import cases
from gemmgen.gpu import compiler
from gemmgen.ir.launch_shape import spelled
from gemmgen.ir.nodes import Program
from gemmgen.language import parse_schedule
from gemmgen.pipeline import Emitted, compile_schedule
from gemmgen.proof import code_checks
from gemmgen.proof.calls import Caller
from gemmgen.proof.compiled import architectures
from gemmgen.proof.equivalence import same_meaning
from gemmgen.proof.round_trip import unread_level
from gemmgen.proof.shapes import fit, ring_of, tile_of
from gemmgen.schedule.formatting import format_schedule
from gemmgen.schedule.model import Schedule
from gemmgen.sim.failures import KernelFault
from gemmgen.sim.run import CompiledKernel

ARCH = "sm_80"
"""The architecture of GPU tests, for any target of a random schedule."""
HOPPER = "sm_90"


@record
class Failure:
    """A failure of a layer.

    ``kind`` is the same for failures of one cause: shrinking keeps it.  ``case`` is the call that
    failed, if it was one.  ``blame`` names the pass after which the meaning is lost, or the
    directives that the text cites.
    """

    layer: str
    kind: str
    detail: str
    case: Case | None = None
    blame: str = ""


@record
class Verdict:
    """``refused`` is the message of a located error; ``plan`` has an accepted schedule's
    classes."""

    failure: Failure | None = None
    refused: str = ""
    plan: Plan = field(default_factory=dict[str, str])
    runs: int = 0


class Late(Exception):
    """The time for trials has ended; what was being tried is left."""


class _Failed(Exception):
    def __init__(self, failure: Failure):
        super().__init__(failure.detail)
        self.failure = failure


def judge(text: str, dice: Dice, *, compiled: bool = False, deadline: float = math.inf) -> Verdict:
    """Run all layers; ``compiled`` includes NVRTC.  A refused schedule is not a failure.

    Raises ``Late`` between two runs after the ``deadline``, by ``time.time``.
    """
    try:
        with _guarded("C0"):
            emitted = compile_schedule(parse_schedule(Source(text)))
    except ScheduleError as refusal:
        return Verdict(refused=refusal.message)
    except _Failed as failed:
        return Verdict(failed.failure)
    x, y = emitted.interface.block
    plan, runs = plan_of(emitted.schedule, x * y), 0
    try:
        for layer in ("C0", "C1", "C2", *(["C3"] if compiled else [])):
            _check_time(deadline)
            runs += _check(layer, emitted, dice, deadline=deadline)
    except _Failed as failed:
        return Verdict(failed.failure, plan=plan)
    return Verdict(plan=plan, runs=runs)


def compile_text(text: str) -> Emitted | None:
    """The kernel of a schedule that is legal."""
    try:
        return compile_schedule(parse_schedule(Source(text)))
    except ScheduleError:
        return None


def _check_time(deadline: float) -> None:
    if time.time() > deadline:
        raise Late


def again(
    text: str, failure: Failure, chosen: tuple[Case, ...], deadline: float = math.inf
) -> Failure | None:
    """The failure of ``failure``'s layer that ``text`` has at ``chosen``, if any; none is found
    after the ``deadline``."""
    try:
        with _guarded("C0"):
            emitted = compile_schedule(parse_schedule(Source(text)))
        fitted = (replace(case, shape=fit(emitted, case.shape)) for case in chosen)
        chosen = tuple(dict.fromkeys(fitted))
        _check(failure.layer, emitted, Dice("again"), chosen, deadline=deadline)
    except (GemmgenError, Late):
        return None
    except _Failed as failed:
        return failed.failure
    return None


def _check(
    layer: str,
    emitted: Emitted,
    dice: Dice,
    chosen: tuple[Case, ...] | None = None,
    *,
    deadline: float = math.inf,
) -> int:
    """Runs one layer; returns the number of C2's runs, which are at ``chosen`` or at random."""
    match layer:
        case "C0":
            check_text(emitted.schedule)
            check_levels(emitted.program)
        case "C1":
            check_meaning(emitted, dice)
        case "C2":
            if chosen is None:
                with _guarded("C2"):
                    chosen = cases(emitted, dice)
            return check_runs(emitted, chosen, deadline)
        case _:
            check_compiled(emitted)
    return 0


def check_text(schedule: Schedule) -> None:
    """C0: the canonical text is the same schedule."""
    text = format_schedule(schedule)
    with _guarded("C0"):
        try:
            back = parse_schedule(Source(text))
        except ScheduleError as refusal:
            detail = f"the canonical text is refused: {refusal.message}"
            raise _Failed(Failure("C0", "canonical text", detail)) from None
    if back != schedule or format_schedule(back) != text:
        raise _Failed(Failure("C0", "canonical text", "the canonical text has another meaning"))


def check_levels(program: Program) -> None:
    """C0: the text of each level of the IR reads back."""
    with _guarded("C0"):
        unread = unread_level(program)
    if unread is not None:
        raise _Failed(Failure("C0", "text of the IR", unread))


def check_meaning(emitted: Emitted, dice: Dice) -> None:
    """C1: the last program computes its problem, at one tiny shape."""
    with _guarded("C1"):
        m, n, k, _ = tile_of(emitted.program)
        rows, columns = dice.pick(((2, n + 1), (m + 1, 3), (3, 5), (1, 1)))
        depth = dice.pick((1, 3, k + 1, ring_of(emitted.program) - 1))
        shape = fit(emitted, (min(rows, 64), min(columns, 64), min(depth, 96)))
        found = same_meaning(emitted.lowered, emitted.program.problem, shape)
    if found is not None:
        raise _Failed(Failure("C1", "meaning", f"{spelled(shape)}: {found.text()}"))


def check_runs(emitted: Emitted, chosen: tuple[Case, ...], deadline: float = math.inf) -> int:
    """C2: the text run on the CPU, with every access checked; returns the number of runs."""
    with _guarded("C2", "g++"):
        kernel = CompiledKernel(emitted.text, emitted.interface, checked=True)
    caller = Caller(emitted)
    try:
        for case in chosen:
            _check_time(deadline)
            with _guarded("C2", case=case):
                complaint = caller.complaint(case, kernel)
            if complaint is not None:
                raise _Failed(Failure("C2", "wrong result", complaint, case))
    finally:
        kernel.close()
    return len(chosen)


def check_compiled(emitted: Emitted) -> None:
    """C3 for its target, and for sm_90, where ptxas was seen to write illegal instructions."""
    for arch in dict.fromkeys((emitted.target, *{HOPPER}.intersection(architectures(emitted)))):
        with _guarded("C3", "compiler"):
            compiler.compile_text(emitted.text, arch)
            with contextlib.suppress(CannotCheck):  # nothing here reads machine code
                illegal = code_checks.legality(emitted.text, arch).errors
                if illegal:
                    raise _Failed(Failure("C3", "illegal instruction", illegal[0]))


@contextlib.contextmanager
def _guarded(layer: str, kind: str = "", case: Case | None = None) -> Generator[None]:
    """A context whose exceptions are failures, except for a refused schedule."""
    try:
        yield
    except (ScheduleError, _Failed):
        raise
    except KernelFault as fault:
        first = fault.findings[0] if fault.findings else None
        blamed = first.directives[0] if first and first.directives else ""
        kind = first.kind if first else "fault"
        raise _Failed(Failure(layer, kind, str(fault), case, blamed)) from None
    except Exception as error:
        kind = kind or type(error).__name__
        detail = f"{type(error).__name__}: {error}{_origin(error)}"
        raise _Failed(Failure(layer, kind, detail, case)) from error


def _origin(error: Exception) -> str:
    """The function of gemmgen that raised an internal error."""
    frames = traceback.extract_tb(error.__traceback__)
    if isinstance(error, GemmgenError) or not frames:
        return ""
    return f" ({frames[-1].filename.rpartition('gemmgen/')[2]}:{frames[-1].name})"
