"""Measured results as plans of a request: at its shape, and from the nearest shapes.

The fastest result at the shape itself is the choice.  One from another shape is an option: its
estimate is the cost model's at this shape, times the ratio of measured to estimated seconds at the
other one to the power of ``exp(-distance / REACH)``, since the errors of the model agree less the
further shapes are apart.  Results of another GPU with the same architecture and as many
multiprocessors (H200, H100) are options in the same way; one at the shape is the choice if the
request's own GPU has none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from math import ceil, exp, inf

from gemmgen.base.errors import ScheduleError
from gemmgen.base.record import record
from gemmgen.base.source import Source
from gemmgen.base.units import duration
from gemmgen.explore.cost import estimate, launched
from gemmgen.explore.request import Request
from gemmgen.explore.results.canonical_names import CanonicalNames, renamed
from gemmgen.explore.results.freshness import current, stale
from gemmgen.explore.results.measured_result import MeasuredResult, ProblemKey, terms_of
from gemmgen.explore.results.results_store import Results
from gemmgen.explore.suggest.acceptance import accepts
from gemmgen.explore.suggest.warpgroup_plan import WarpgroupPlan
from gemmgen.explore.suggest.warpgroup_schedules import plan_of
from gemmgen.explore.tune.footprint import block_sizes
from gemmgen.gpu.gpu_names import same_gpu
from gemmgen.gpu.gpus import GPUS, Gpu
from gemmgen.ir.dtypes import DType
from gemmgen.ir.launch_shape import spelled
from gemmgen.language import parse_schedule
from gemmgen.pipeline import Emitted, compile_schedule
from gemmgen.schedule.formatting import format_schedule
from gemmgen.schedule.model import Schedule

ALIKE = 2
"""Results at the shape, of the other 16-bit type or of another GPU, that are options."""
NEAR = 3
"""Other shapes whose fastest results are options."""
FAR = 2.0
"""The greatest distance of such a shape: the sum of the logarithms of the extents' ratios."""
REACH = 2.5
"""The distance at which a ratio of measured to estimated seconds is taken to the power 1/e; fitted
to ``docs/data/warpgroups.json``, where the correlation of such ratios is .8 at a distance of .5, .6
at 1.5 and .2 at 5."""


@record
class MeasuredPlan:
    """A measured schedule for a request, in the request's names."""

    result: MeasuredResult
    request: Request
    schedule: Schedule

    @property
    def text(self) -> str:
        return format_schedule(self.schedule)

    @property
    def terms(self) -> DType | None:
        """The type of the terms whose products f32 is computed from, with less precision."""
        return terms_of(self.schedule)

    @property
    def exact(self) -> bool:
        """Whether it was measured on the request's GPU at its shape, with its types."""
        same_shape = self.result.problem.shape == self.request.shape
        return same_shape and self.same_types and self.same_gpu

    @property
    def same_gpu(self) -> bool:
        """Whether it was measured on the request's GPU."""
        return same_gpu(self.result.machine.gpu, self.request.gpu.name)

    @property
    def same_types(self) -> bool:
        """Whether it was measured with the request's types; else with the other 16-bit type."""
        return self.result.problem.text == ProblemKey.of_request(self.request).text

    def emitted(self) -> Emitted | None:
        """The kernel; None if the result is stale or the kernel refuses the request's tensors."""
        found = current(self.result, self.request.problem) if self.same_types else self._retyped()
        return found if found is not None and accepts(found, self.request) else None

    def _retyped(self) -> Emitted | None:
        """The kernel with the request's types; None if the result is stale."""
        try:
            return None if stale(self.result) else compile_schedule(self.schedule)
        except ScheduleError:
            return None

    def as_form(self) -> WarpgroupPlan | None:
        """The same as a plan of the cost model, if it is one."""
        plan = plan_of(self.schedule, self.request)
        if plan is None or parse_schedule(Source(plan.text)) != self.schedule:
            return None
        return plan

    def tiles(self) -> str:
        """How many tiles there are; empty if the schedule states none."""
        stated = next((x for x in self.schedule.directives if x.name == "tile"), None)
        if stated is None:
            return ""
        sizes = (stated.argument(x) for x in self.request.letters[:2])
        m, n = (x.value if x and isinstance(x.value, int) else 1 for x in sizes)
        rows, columns, *_ = self.request.shape
        return f"tile: {ceil(rows / m)} x {ceil(columns / n)} tiles of {m} x {n}."

    def reason(self) -> str:
        result = self.result
        found = f"{result.described()[0].upper()}{result.described()[1:]}"
        if self.exact:
            share = f", {result.vendor / result.seconds:.3f} of {VENDOR}" if result.vendor else ""
            dense = "" if result.problem == ProblemKey.of_request(self.request) else PITCHES
            return f"{found}: {duration(result.seconds)}{share}{dense}."
        if not self.same_types:
            return f"The fastest schedule of {_HALVES} there: {result.described()}."
        said = result.described()
        if result.problem.shape == self.request.shape:
            return f"The fastest schedule on another GPU, with as many multiprocessors: {said}."
        return (
            f"The fastest measured schedule of a near shape, {spelled(result.problem.shape)} "
            f"({said}), which is estimated to be the fastest here."
        )


VENDOR = "the vendor's library in the same run"
PITCHES = ", with other leading dimensions"


def at_the_shape(request: Request, results: Results) -> tuple[MeasuredPlan, Emitted] | None:
    """The fastest result for the request that is not stale.

    A result counts only if it computes f32 by split bf16 exactly where the request allows it.
    """
    for result in results.exact(ProblemKey.of_request(request), request.gpu.name):
        plan = plan_for(result, request)
        if plan is None or plan.terms != request.terms:
            continue
        if (emitted := plan.emitted()) is not None:
            return plan, emitted
    return None


def near_the_shape(request: Request, results: Results) -> Iterator[tuple[MeasuredPlan, float]]:
    """The fastest results of the nearest shapes, with their estimates at the request's; before them
    those at the shape that leave the choice open, with their time."""
    key = ProblemKey.of_request(request)
    for result in results.exact(key, request.gpu.name)[:1] if request.terms else ():
        if plan := plan_for(result, request):
            yield plan, result.seconds
    yield from _scaled(results.nearest(key, request.gpu.name, NEAR), request, request.gpu)


def on_like_gpus(request: Request, results: Results) -> Iterator[tuple[MeasuredPlan, float]]:
    """The results at the shape of other GPUs with the same architecture and as many
    multiprocessors, fastest first, with their estimates on the request's GPU."""
    key = ProblemKey.of_request(request)
    for gpu in _like(request.gpu):
        yield from _scaled(results.exact(key, gpu.name), request, gpu)


def near_on_like_gpus(request: Request, results: Results) -> Iterator[tuple[MeasuredPlan, float]]:
    """The same of the nearest shapes."""
    key = ProblemKey.of_request(request)
    for gpu in _like(request.gpu):
        yield from _scaled(results.nearest(key, gpu.name, NEAR), request, gpu)


def _like(own: Gpu) -> Iterator[Gpu]:
    for gpu in GPUS.values():
        if (gpu.arch, gpu.sms) == (own.arch, own.sms) and not same_gpu(gpu.name, own.name):
            yield gpu


def _scaled(
    found: Iterable[MeasuredResult], request: Request, gpu: Gpu
) -> Iterator[tuple[MeasuredPlan, float]]:
    """Results that were measured on ``gpu``, with their estimates for the request."""
    key, compiled = ProblemKey.of_request(request), 0
    for result in found:
        distance = key.distance(result.problem.shape)
        plan = plan_for(result, request) if distance <= FAR else None
        if plan is None or (compiled and plan_of(plan.schedule, request) is None):
            continue
        compiled += plan_of(plan.schedule, request) is None
        there = replace(request, shape=result.problem.shape, pitches=(), gpu=gpu)
        known, seconds = _estimate(plan, there), _estimate(plan, request)
        if 0 < known < inf and seconds < inf:
            yield plan, seconds * (result.seconds / known) ** exp(-distance / REACH)


def of_the_other_halves(request: Request, results: Results) -> Iterator[tuple[MeasuredPlan, float]]:
    """The fastest results at the shape with f16 for bf16 or the reverse, with their time, which
    hardly depends on that."""
    key = ProblemKey.of_request(request)
    other = replace(key, text=_exchanged(key.text))
    if other == key or request.terms:
        return
    for result in results.exact(other, request.gpu.name)[:ALIKE]:
        plan = plan_for(replace(result, schedule=_exchanged(result.schedule)), request)
        if plan is not None:
            yield replace(plan, result=result), result.seconds


def _exchanged(text: str) -> str:
    """A schedule's text with f16 for bf16 and the reverse."""
    return _HALF.sub(lambda found: "f16" if found[0] == "bf16" else "bf16", text)


_HALF = re.compile(r"\bb?f16\b")
_HALVES = "the other 16-bit type"


def plan_for(result: MeasuredResult, request: Request) -> MeasuredPlan | None:
    """The result with the request's names; None for a schedule that computes with less precision
    than was asked for."""
    own = renamed(_parsed(result.schedule), CanonicalNames.of(request.problem).reversed())
    problem = request.problem
    own = replace(own, kernel=problem.kernel, same_bits=problem.same_bits)
    plan = MeasuredPlan(result, request, own)
    return None if plan.terms not in (None, request.terms) else plan


def _estimate(plan: MeasuredPlan, request: Request) -> float:
    """The cost model's seconds for the plan's schedule."""
    form = plan_of(plan.schedule, request)
    if form is not None:
        return form.seconds
    emitted = current(plan.result, request.problem)
    if emitted is None:
        return inf
    sizes = block_sizes(emitted.program, emitted.interface)
    return estimate(launched(sizes, request.shape, request.gpu), request.gpu)


def _parsed(text: str) -> Schedule:
    return parse_schedule(Source(text))
