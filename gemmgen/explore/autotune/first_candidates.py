"""The first candidates of a search: stored schedules, then the top of ``suggest``'s ranking."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice

from gemmgen.base.record import record
from gemmgen.explore.autotune.judged_candidates import Judge
from gemmgen.explore.request import Request
from gemmgen.explore.suggest.choose import Option, ranked
from gemmgen.explore.suggest.warpgroup_plan import WarpgroupPlan
from gemmgen.explore.suggest.warpgroup_ranking import fastest

MOST = 14
"""Schedules of ``suggest``'s ranking."""
LOOKED_AT = 400
"""Warpgroup schedules among which they are chosen."""
SAME_TILE, SAME_CLUSTER = 2, 5
"""The most of them with a tile, and the most with a cluster, an order and parts of K."""
STORED = "stored"
SEARCH = "search"


@record
class Seed:
    """A candidate before the search: ``origin`` is ``stored`` or ``suggest #3``."""

    text: str
    origin: str
    seconds: float


def seeds(request: Request, stored: Sequence[str], judge: Judge) -> tuple[Seed, ...]:
    """The legal ones of ``stored``, and the first legal ones of the ranking that differ."""
    found: dict[str, Seed] = {}
    for judged in judge([(text,) for text in dict.fromkeys(stored)]):
        if judged is not None:
            found.setdefault(judged.text, Seed(judged.text, STORED, judged.seconds))
    rank = 0
    options = _diverse(request)
    while rank < MOST and (some := list(islice(options, MOST))):
        for judged in judge([(option.plan.text,) for option in some]):
            if judged is None or rank == MOST:
                continue
            rank += 1
            origin = f"suggest #{rank}"
            found.setdefault(judged.text, Seed(judged.text, origin, judged.seconds))
    return tuple(found.values())


def _diverse(request: Request) -> Iterator[Option]:
    """The ranking without the options that differ little from better ones; the first one is
    always the one that ``suggest`` writes, if that is legal."""
    tiles, shares = Counter[object](), Counter[object]()
    for option in _ranking(request):
        plan = option.plan
        tile = plan.form.tile[:2]
        if isinstance(plan, WarpgroupPlan):
            share = plan.form.cluster, plan.form.pingpong, plan.form.parts
        else:
            share = plan.form.kind, plan.parts
        if tiles[tile] < SAME_TILE and shares[share] < SAME_CLUSTER:
            tiles[tile] += 1
            shares[share] += 1
            yield option


def _ranking(request: Request) -> list[Option]:
    """All options by their estimates; those for warpgroups first, if there are any."""
    first = ranked(request)
    more = [Option(plan, plan.seconds) for plan in fastest(request, LOOKED_AT)]
    texts = {option.plan.text for option in first}
    return [*first, *(option for option in more if option.plan.text not in texts)]
