"""The time that a schedule should take: measured, or estimated by the model of its kind.

The estimate is never below the roofline: it is the longer of both.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Literal

from gemmgen.analyze.explain import Explanation
from gemmgen.base.errors import ScheduleError, UsageError
from gemmgen.base.record import record
from gemmgen.base.units import significant
from gemmgen.explore.cost import estimate, launched
from gemmgen.explore.request import Request
from gemmgen.explore.results.canonical_names import canonical
from gemmgen.explore.results.freshness import stale
from gemmgen.explore.results.measured_result import MeasuredResult, ProblemKey, terms_of
from gemmgen.explore.results.results_store import Results
from gemmgen.explore.suggest.warpgroup_schedules import plan_of
from gemmgen.explore.tune.footprint import block_sizes
from gemmgen.gpu.gpus import DEFAULT
from gemmgen.ir.atoms import VIA
from gemmgen.schedule.formatting import format_schedule

Basis = Literal["measured", "estimated", "bound"]
DIRECT = 0.7
"""Of the roofline's speed; the ladder's naive kernel reaches 0.68 to 0.84 of it on an H200."""
FITTED = "NVIDIA H200"
"""The GPU that the models were fitted to."""


@record
class ExpectedTime:
    """``seconds`` of a launch, and what they rest on: ``source`` says it in words."""

    seconds: float
    basis: Basis
    source: str


def expected(e: Explanation) -> ExpectedTime:
    """What is known of the schedule at its shape."""
    found = _measured(e)
    if found is not None:
        by = found.described().partition(" on ")[2]
        return ExpectedTime(found.seconds, "measured", f"measured on {by}")
    bound = e.roofline.flops / e.attainable
    if uses_wgmma(e):
        seconds, kernels = _of_warpgroups(e), f"bf16 kernels with wgmma on an {FITTED}"
    else:
        seconds, kernels = _of_threads(e), f"f32 kernels on an {FITTED}"
        if e.kernel.program.main.spread.atom != "fma":
            kernels += ", which may be off by a third for tensor cores"
    if seconds is None:
        return ExpectedTime(bound, "bound", "no model covers this kernel")
    if not seconds:
        share = f"{DIRECT:.0%} of the bound, as a naive kernel reaches on an {FITTED}"
        return ExpectedTime(bound / DIRECT, "estimated", share)
    own = "" if e.gpu.name == DEFAULT else f", with the figures of {e.gpu.name}"
    source = f"estimated by a model that was fitted to {kernels}{own}"
    return ExpectedTime(max(seconds, bound), "estimated", source)


def request_of(e: Explanation) -> Request:
    """What the schedule computes, for ``suggest``; split f32 is allowed if the schedule uses it.

    Raises ``UsageError`` if ``suggest`` does not accept it.
    """
    schedule = e.kernel.emitted.schedule
    return Request(schedule.problem_alone, e.shape, e.gpu, terms=terms_of(schedule))


def uses_wgmma(e: Explanation) -> bool:
    """Whether warpgroups multiply."""
    return e.kernel.program.main.spread.atom in VIA["wgmma"]


def speed(e: Explanation, seconds: float) -> str:
    """``712 TFLOP/s``."""
    return f"{significant(e.roofline.flops / seconds / 1e12)} TFLOP/s"


def _measured(e: Explanation) -> MeasuredResult | None:
    """The result of this very schedule at this shape, if it is current."""
    schedule = e.kernel.emitted.schedule
    own = format_schedule(replace(canonical(schedule), requires=()))
    try:
        key = ProblemKey.of(schedule, e.shape)
    except (ScheduleError, UsageError):
        return None
    found = (x for x in Results.shared().exact(key, e.gpu.name) if x.schedule == own)
    return next((x for x in found if x.problem == key and not stale(x)), None)


def _of_warpgroups(e: Explanation) -> float | None:
    try:
        plan = plan_of(e.kernel.emitted.schedule, request_of(e))
    except (ScheduleError, UsageError):
        return None
    return None if plan is None or plan.seconds == inf else plan.seconds


def _of_threads(e: Explanation) -> float | None:
    """0 for a kind of kernel that the model was not fitted to."""
    block = block_sizes(e.kernel.program, e.kernel.emitted.interface)
    if block.kind == "direct" and block.accumulators == 1:
        return 0.0
    seconds = estimate(launched(block, e.shape, e.gpu), e.gpu)
    return None if seconds == inf else seconds
