"""The plans for warpgroups with the least estimates.

The correction costs some ten times as much as the cost model, so only plans that the model ranks
near its first one are corrected.
"""

from __future__ import annotations

from functools import lru_cache
from math import inf

from gemmgen.explore.request import Request
from gemmgen.explore.suggest.warpgroup_plan import WarpgroupPlan
from gemmgen.explore.suggest.warpgroup_plans import warpgroup_plans

MOST, NEAR = 120, 1.6
"""Plans that are corrected, and by how much longer than the first the last of them takes, by the
cost model, at most."""
_KEPT = 64
"""Requests whose plans a process keeps: a search, its table and its report ask for one again."""


@lru_cache(_KEPT)
def fastest(request: Request, most: int) -> tuple[WarpgroupPlan, ...]:
    """The ``most`` plans with the least estimates, in order."""
    plans = [plan for plan in warpgroup_plans(request) if plan.modeled < inf]
    plans = sorted(plans, key=lambda plan: plan.modeled)[: max(most, MOST)]
    near = [plan for plan in plans if plan.modeled <= NEAR * plans[0].modeled]
    return tuple(sorted(near, key=lambda plan: plan.seconds)[:most])
