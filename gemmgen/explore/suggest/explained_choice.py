"""The measured results that a suggestion was chosen from, each with what became of it."""

from __future__ import annotations

from gemmgen.analyze.section import Section
from gemmgen.base.units import duration, significant
from gemmgen.explore.request import Request
from gemmgen.explore.results.freshness import stale
from gemmgen.explore.results.measured_result import MeasuredResult, ProblemKey
from gemmgen.explore.results.results_store import Results
from gemmgen.explore.suggest.choose import Suggestion
from gemmgen.explore.suggest.measured_plans import FAR, NEAR, near_the_shape, plan_for
from gemmgen.ir.launch_shape import spelled
from gemmgen.schedule.formatting import format_schedule

CHOSEN = "chosen"


def explained(found: Suggestion, results: Results) -> tuple[Section, Section, Section]:
    """The choice, the results at the shape, and those of the nearest shapes."""
    request = found.request
    return _choice(found), _at_the_shape(found, request, results), _near(found, request, results)


def _choice(found: Suggestion) -> Section:
    request, measured = found.request, found.chosen.measured
    shape, gpu = spelled(request.shape), request.gpu.name
    if measured is None:
        title = f"{shape} on {gpu}: the cost model's choice, as no measured result is faster"
    elif measured.exact:
        title = f"{shape} on {gpu}: {measured.result.described()}"
    else:
        near = spelled(measured.result.problem.shape)
        title = f"{shape} on {gpu}: the schedule measured at {near}, by its estimate here"
    lines = tuple((line,) for line in format_schedule(found.schedule).splitlines())
    return Section(title, (), lines)


def _at_the_shape(found: Suggestion, request: Request, results: Results) -> Section:
    rows: list[tuple[str, ...]] = []
    chosen = _result(found)
    for result in results.exact(ProblemKey.of_request(request), request.gpu.name):
        fate = CHOSEN if result == chosen else _fate(result, request)
        rows.append((*_figures(result), fate or "slower"))
    title = "results at this shape, fastest first" if rows else "no results at this shape"
    return Section(title, HEADER if rows else (), tuple(rows))


def _near(found: Suggestion, request: Request, results: Results) -> Section:
    key, rows = ProblemKey.of_request(request), list[tuple[str, ...]]()
    estimates = {plan.result: seconds for plan, seconds in near_the_shape(request, results)}
    chosen = _result(found)
    exact = found.chosen.measured is not None and found.chosen.measured.exact
    slower = "not needed" if exact else "slower here"
    for result in results.nearest(key, request.gpu.name, NEAR):
        distance, here = key.distance(result.problem.shape), estimates.get(result)
        fate = "too far" if distance > FAR else _fate(result, request) or slower
        rows.append(
            (
                spelled(result.problem.shape),
                f"{distance:.2f}",
                *_figures(result),
                "-" if here is None else duration(here),
                CHOSEN if result == chosen else fate,
            )
        )
    header = ("shape", "distance", *HEADER[:-1], "estimated here", "")
    title = "the fastest results of the nearest shapes" if rows else "no results at other shapes"
    notes = ("distance: the sum of the logarithms of the extents' ratios",) if rows else ()
    return Section(title, header if rows else (), tuple(rows), notes)


HEADER = ("time", "TFLOP/s", "of vendor", "date", "by", "")


def _figures(result: MeasuredResult) -> tuple[str, ...]:
    share = "-" if result.vendor is None else f"{result.vendor / result.seconds:.3f}"
    speed = significant(result.tflops)
    return duration(result.seconds), speed, share, result.date[:10], result.origin


def _fate(result: MeasuredResult, request: Request) -> str:
    """Why the result can't be chosen; empty if it can."""
    if why := stale(result):
        return f"stale: {why}"
    plan = plan_for(result, request)
    if plan is None:
        return "split f32, for --fast only"
    if plan.emitted() is not None:
        return ""
    other = "adds in another order, or " if request.problem.same_bits else ""
    return f"its kernel {other}does not take these tensors"


def _result(found: Suggestion) -> MeasuredResult | None:
    measured = found.chosen.measured
    return None if measured is None else measured.result
