"""Tries the candidates, and says which one the models expect most of.

Two models judge a schedule: the cost model of ``suggest`` and ``tune`` estimates its time, which
latency is a part of, and the roofline of ``explain`` counts its accesses, which coalescing and bank
conflicts are a part of, and gives the least time.  A schedule is taken to need the longer of both;
one whose threads read each factor from global memory for one sum reaches ``DIRECT`` of the
roofline, as the cost model was fitted to no such kernel.  Of several statements
the gain of each is compared (their geometric mean).  Only the candidates with the best estimates
are counted.
"""

from __future__ import annotations

from math import inf

from gemmgen.analyze.explain import Explanation, roofline_at
from gemmgen.analyze.roofline import Roofline
from gemmgen.base.errors import ScheduleError, UsageError
from gemmgen.base.record import record
from gemmgen.base.source import Source
from gemmgen.explore.cost import estimate, launched
from gemmgen.explore.next_step.candidates import Variant, candidates
from gemmgen.explore.next_step.warpgroups import warpgroups
from gemmgen.explore.tune.legal_points import sized
from gemmgen.language import parse_schedule
from gemmgen.schedule.model import Schedule

COUNTED = 2
"""Candidates whose accesses are counted."""
GAIN = 0.03
"""The share of the time that a step must save: less is within what the models tell apart."""
DIRECT = 0.7
"""Of the roofline's speed; the ladder's naive kernel reaches 0.68 to 0.84 of it on an H200."""


@record
class NextStep:
    """``statements`` to add or change.  Operations a second: ``now`` and ``expected`` are what the
    models expect of the schedule as it is and of the changed one, ``attainable`` the latter's
    bound.  ``binding`` is what bounds the schedule now; the least time for it falls to one
    ``less``-th, or it is no bound of the changed one (None).  ``rewrite``: the statements are those
    of another schedule, which ``suggest`` writes."""

    statements: tuple[str, ...]
    now: float
    expected: float
    attainable: float
    binding: str
    less: float | None
    rewrite: bool = False


@record
class _Tried:
    candidate: Variant
    schedule: Schedule
    seconds: float

    def gain(self, now: float, seconds: float) -> float:
        """How much shorter each statement makes the time ``now``, if it becomes ``seconds``."""
        return (now / seconds) ** (1 / len(self.candidate.statements))


@record
class _Counted:
    tried: _Tried
    roofline: Roofline

    @property
    def seconds(self) -> float:
        return _expected(self.tried.seconds, self.roofline.flops / self.roofline.attainable)


def next_step(e: Explanation) -> NextStep | None:
    """None if no candidate is expected to save ``GAIN`` of the time.  Where warpgroups can take the
    operands they are the step."""
    return _rewritten(e) or _changed(e)


def _rewritten(e: Explanation) -> NextStep | None:
    """The schedule of warpgroups, if it is expected to be faster than this one."""
    plan, flops = warpgroups(e), e.roofline.flops
    if plan is None:
        return None
    now = max(_estimated(e.kernel.emitted.schedule, e) or 0.0, flops / e.attainable)
    if plan.seconds > now * (1 - GAIN):
        return None
    words = ("tensor_core", "async_copy", "warp_specialize")
    lines = [" ".join(line.split()) for line in plan.text.splitlines()]
    statements = tuple(line for line in lines if line.split()[0] in words)
    expected = flops / plan.seconds
    return NextStep(
        statements, flops / now, expected, expected, e.roofline.binding.name, None, rewrite=True
    )


def _changed(e: Explanation) -> NextStep | None:
    """The statement to add or to change that is expected to save the most."""
    own, flops = _estimated(e.kernel.emitted.schedule, e), e.roofline.flops
    if own is None:
        return None
    now = _expected(own, flops / e.attainable)
    counted = [
        _Counted(x, roofline_at(x.schedule, e.shape, e.gpu, beta=e.beta)) for x in _best(e, now)
    ]
    better = [each for each in counted if each.seconds < now * (1 - GAIN)]
    if not better:
        return None
    best = max(better, key=lambda each: each.tried.gain(now, each.seconds))
    before, after = e.roofline.binding, {bound.name: bound for bound in best.roofline.bounds}
    return NextStep(
        best.tried.candidate.statements,
        flops / now,
        flops / best.seconds,
        best.roofline.attainable,
        before.name,
        before.seconds / after[before.name].seconds if before.name in after else None,
    )


def _best(e: Explanation, now: float) -> list[_Tried]:
    """The legal candidates with the best estimates, and those that the cost model does not know."""
    found: list[_Tried] = []
    for candidate in candidates(e):
        try:
            schedule = parse_schedule(Source(candidate.text, "<next step>"))
        except ScheduleError:
            continue
        seconds = _estimated(schedule, e)
        if seconds is not None and seconds < now * (1 - GAIN):
            found.append(_Tried(candidate, schedule, seconds))
    known = [tried for tried in found if tried.seconds]
    known.sort(key=lambda tried: tried.gain(now, tried.seconds), reverse=True)
    return known[:COUNTED] + [tried for tried in found if not tried.seconds]


def _expected(estimate: float, bound: float) -> float:
    """Seconds by both models; an ``estimate`` of 0 is none."""
    return max(estimate, bound) if estimate else bound / DIRECT


def _estimated(schedule: Schedule, e: Explanation) -> float | None:
    """Seconds by the cost model, 0 if it does not know such kernels; None for a schedule that does
    not compile, does not take the shape, or does not fit."""
    try:
        block = sized(schedule, [e.shape])
    except (ScheduleError, UsageError):
        return None
    if block.kind == "direct" and block.sums == 1:
        return 0.0
    seconds = estimate(launched(block, e.shape, e.gpu), e.gpu)
    return None if seconds == inf else seconds
