"""The rung after ``mma.sync``: warpgroups (wgmma) fed by TMA, where the GPU has them.

It is not a statement to add but another schedule, which ``suggest`` writes, with the time that its
cost model estimates.
"""

from __future__ import annotations

from gemmgen.analyze.explain import Explanation
from gemmgen.base.errors import ScheduleError, UsageError
from gemmgen.base.source import Source
from gemmgen.explore.suggest.request import Request
from gemmgen.explore.suggest.taking import takes
from gemmgen.explore.suggest.warpgroup_plans import WarpgroupPlan, fastest
from gemmgen.ir.atoms import VIA
from gemmgen.pipeline import compile_source

TRIED = 4
"""Schedules that are compiled to find a legal one."""


def warpgroups(e: Explanation) -> WarpgroupPlan | None:
    """The fastest schedule of warpgroups for what ``e`` explains; None if it has them already, or
    the GPU or the operands don't."""
    schedule = e.kernel.emitted.schedule
    if e.kernel.program.main.spread.atom in VIA["wgmma"]:
        return None
    try:
        request = Request(schedule.problem_alone, e.shape, e.gpu)
        for plan in fastest(request, TRIED):
            if takes(compile_source(Source(plan.text)), request):
                return plan
    except (ScheduleError, UsageError):
        pass
    return None
