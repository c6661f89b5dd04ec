"""Finds the next step of a schedule: the statement that is predicted to save most, or the schedule
that ``suggest`` writes.

Two models judge a change: the cost model of ``suggest`` and ``tune`` estimates its time, which
latency is a part of, and the roofline of ``explain`` counts its accesses, which coalescing and bank
conflicts are a part of, and gives the least time.  A schedule is taken to need the longer of both
(``expected``).  Of several statements the gain of each is compared (their geometric mean).  Only
the candidates with the best estimates are counted.

Where wgmma takes the operands of another kernel, and where no change helps, the schedule of
``suggest`` is the step, if it is predicted to be faster.
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
from gemmgen.explore.next_step.expected import DIRECT, ExpectedTime, request_of, uses_wgmma
from gemmgen.explore.suggest.choose import Suggestion, choose
from gemmgen.explore.tune.legal_points import sized
from gemmgen.ir.atoms import VIA
from gemmgen.language import parse_schedule
from gemmgen.schedule.formatting import format_schedule
from gemmgen.schedule.model import Schedule

COUNTED = 2
"""Candidates whose accesses are counted."""
GAIN = 0.03
"""The share of the time that a step must save: less is within what the models tell apart."""
ERROR = {True: 0.1, False: 0.25}
"""The same of another schedule with the same units as this one (wgmma or not) where not both were
measured: what the model of such kernels is off by."""


@record
class NextStep:
    """``statements`` to add or change.  Operations a second: ``now`` and ``expected`` are what is
    expected of the schedule as it is and of the changed one, ``attainable`` the latter's bound.
    ``binding`` is what bounds the schedule now; the least time for it falls to one ``less``-th, or
    it is not a bound of the changed one (None).  ``suggestion``: the statements are those of its
    schedule, which replaces this one."""

    statements: tuple[str, ...]
    now: float
    expected: float
    attainable: float
    binding: str
    less: float | None
    suggestion: Suggestion | None = None

    @property
    def rewrite(self) -> bool:
        """Whether another schedule replaces this one."""
        return self.suggestion is not None


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


def next_step(e: Explanation, own: ExpectedTime) -> NextStep | None:
    """None if nothing is predicted to save ``GAIN`` of the time that the schedule takes,
    ``own``."""
    if uses_wgmma(e):
        return _rewritten(e, own)
    to_wgmma = _rewritten(e, own, via="wgmma")
    return to_wgmma or _changed(e, own) or _rewritten(e, own)


def _rewritten(e: Explanation, own: ExpectedTime, via: str = "") -> NextStep | None:
    """The schedule of ``suggest``, if it is predicted to be faster; ``via``: and multiplies so."""
    try:
        found = choose(request_of(e))
    except (ScheduleError, UsageError):
        return None
    wgmma = found.emitted.program.main.spread.atom in VIA["wgmma"]
    if (via and not wgmma) or not _as_precise(found, e):
        return None
    measured = found.chosen.measured is not None and found.chosen.measured.exact
    same = wgmma is uses_wgmma(e) and not (measured and own.basis == "measured")
    if found.chosen.seconds > own.seconds * (1 - (ERROR[wgmma] if same else GAIN)):
        return None
    here = set(_lines(e.kernel.emitted.schedule))
    statements = tuple(line for line in _lines(found.schedule) if line not in here)
    if not statements:
        return None
    flops, after = e.roofline.flops, e.roofline.flops / found.chosen.seconds
    now, binding = flops / own.seconds, e.roofline.binding.name
    return NextStep(statements, now, after, after, binding, None, found)


def _as_precise(found: Suggestion, e: Explanation) -> bool:
    """Whether a suggestion promotes its accumulators as often as the schedule does, if it does, and
    multiplies as many parts."""
    ours, other = e.kernel.emitted.interface.arithmetic, found.emitted.interface.arithmetic
    often = ours.terms is None or (other.terms is not None and other.terms <= ours.terms)
    return often and other.products >= ours.products


def _lines(schedule: Schedule) -> list[str]:
    """The statements of a schedule, with single spaces."""
    return [" ".join(line.split()) for line in format_schedule(schedule).splitlines()]


def _changed(e: Explanation, own: ExpectedTime) -> NextStep | None:
    """The statement to add or to change that is predicted to save the most."""
    estimated, flops = _estimated(e.kernel.emitted.schedule, e), e.roofline.flops
    if estimated is None:
        return None
    now = _expected(estimated, flops / e.attainable)
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
        flops / own.seconds,
        flops / own.seconds * now / best.seconds,
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
    if block.kind == "direct" and block.accumulators == 1:
        return 0.0
    seconds = estimate(launched(block, e.shape, e.gpu), e.gpu)
    return None if seconds == inf else seconds
