"""What a plan costs: a closed form of its sizes, without compiling anything.

A launch takes as long as its rounds of blocks, the last of which has fewer blocks on each
multiprocessor; a block takes a beginning, its steps and an end; a step takes what its warps issue,
what they read of shared memory, or what one of them waits for.  No launch is faster than memory.
``Costs`` has the constants, fitted to times measured on an NVIDIA H200.
"""

from __future__ import annotations

from math import ceil, inf

from gemmgen.analyze.gpus import SCHEDULERS, Gpu
from gemmgen.explore.suggest.pace import pace
from gemmgen.explore.suggest.plan import Plan
from gemmgen.explore.suggest.sizes import LOOP, Sizes, sizes_of
from gemmgen.record import record

L2_BYTES = 40e6
"""What stays in the L2 cache from one launch to the next."""


EXACT = 0.97
"""The share of a launch's time that is left where no access has a guard."""
LIMIT = 6
"""How sharply a launch goes from being bound by arithmetic to being bound by memory."""


@record
class Costs:
    """Clocks unless said otherwise.

    ``launch``: seconds from one launch to the next of an empty kernel.  ``first``: a block's first
    tile, from its start until it can multiply.  ``late``: from a copy's issue until a step may use
    it.  ``barrier``: a step beside its instructions.  ``term``: what a warp waits for in each term,
    however little it computes.  ``copy``: issue slots of a copied piece.  ``idle``: a scheduler's
    loss with one warp, as a share.  ``store``: a block's end.  ``meet`` and ``part``: the last
    block of a tile finds out that it is, and adds one part of one element per thread.
    ``gather``: a step of lanes, from its reads to its sums.  ``shuffles``: adding lanes' sums.
    ``memory`` and ``cache``: shares of their bandwidths that are reached; ``block``: bytes in a
    clock that one multiprocessor gets at the most.
    """

    launch: float = 7.71e-07
    first: float = 113
    late: float = 386
    barrier: float = 201
    term: float = 8.98
    copy: float = 18.3
    turn: float = 20.4
    spread: float = 0.75
    bank: float = 0.68
    hide: float = 0.285
    apart: float = 1.04
    bare: float = 10.3
    wide: float = 0.771
    single: float = 4.97
    queue: float = 3.48
    overlap: float = 1.92
    fill: float = 1.2
    idle: float = 0.0358
    store: float = 28.8
    meet: float = 1.8e03
    part: float = 20.2
    gather: float = 344
    shuffles: float = 235
    memory: float = 1.2
    cache: float = 1.01
    block: float = 13.9
    lead: float = 0.148


H200 = Costs()


def seconds(plan: Plan, costs: Costs = H200) -> float:
    """Of one launch; infinite where not even one block fits."""
    return estimate(sizes_of(plan), plan.request.gpu, costs) * factor(plan)


def factor(plan: Plan) -> float:
    """What the sizes leave out: how long a form was measured to take, and guards of accesses."""
    return pace(plan) * (EXACT if plan.exact else 1.0)


def estimate(sizes: Sizes, gpu: Gpu, costs: Costs = H200) -> float:
    """Seconds of a launch of such sizes."""
    if not sizes.resident:
        return inf
    rounds, rest = divmod(sizes.blocks, gpu.sms * sizes.resident)
    shares = [sizes.resident] * min(rounds, 1) + [ceil(rest / gpu.sms)] * min(rest, 1)
    clocks = sum(_block(sizes, share, costs) for share in shares)
    if rounds > 1:
        clocks += (rounds - 1) * _block(sizes, sizes.resident, costs)
    hidden = (rounds + min(rest, 1) - 1) * costs.hide * _ends(sizes, sizes.resident, costs)
    clocks -= max(0.0, hidden) if sizes.resident > 1 else 0.0
    cache = (gpu.l2 or 4 * gpu.memory) * costs.cache
    slow = gpu.memory * costs.memory if sizes.once > L2_BYTES else cache
    moved = max(sizes.once / slow, sizes.through / cache)
    handed = costs.spread * sizes.handed / cache
    return ((clocks / gpu.clock + handed) ** LIMIT + moved**LIMIT) ** (1 / LIMIT) + costs.launch


def _block(sizes: Sizes, share: int, costs: Costs) -> float:
    """Clocks of ``share`` blocks side by side on one multiprocessor."""
    return sizes.steps * _step(sizes, share, costs) + _ends(sizes, share, costs)


def _ends(sizes: Sizes, share: int, costs: Costs) -> float:
    """Clocks before the first step and after the last one."""
    tile = sizes.tile * share
    ends = costs.first + costs.store + tile * 4 * sizes.scatter**costs.apart / costs.block
    ahead = min(sizes.stages - 1, sizes.steps) if sizes.stages > 1 else 1
    per = max(1.0, share * sizes.warps / SCHEDULERS)
    ends += costs.lead * ahead * (sizes.copies * costs.copy + sizes.turns * costs.turn) * per
    if sizes.parts > 1:
        added = sizes.parts / sizes.groups + (sizes.groups if sizes.groups > 1 else 0)
        ends += costs.meet * (2 if sizes.groups > 1 else 1)
        ends += added * costs.part * max(1.0, sizes.sums * share / 4)
    if sizes.kind == "lanes":
        ends += costs.shuffles * sizes.sums**0.5
    return ends


def _step(sizes: Sizes, share: int, costs: Costs) -> float:
    """Clocks of a step of ``share`` blocks: what all of them issue, or what one waits for."""
    warps = share * sizes.warps
    per, own = warps / SCHEDULERS, sizes.warps / SCHEDULERS
    bare = sizes.kind in ("lanes", "direct")
    moves = (costs.bare if bare else costs.copy) * sizes.copies + costs.turn * sizes.turns
    issue = sizes.fmas + sizes.reads + sizes.stores + moves + LOOP
    port = costs.bank * sizes.port + costs.fill * sizes.copies + costs.single * sizes.turns
    port += costs.wide * sizes.elements * sizes.sparse
    idle = 1 + costs.idle / max(1.0, per)
    busy = _norm(costs, issue * max(1.0, per) * idle, warps * port)
    alone = issue * max(1.0, own) + costs.barrier
    if bare:
        return _norm(costs, busy, issue * max(1.0, own) + costs.gather)
    alone = max(alone, sizes.terms * costs.term)
    late = costs.late + costs.queue * warps * (sizes.copies + sizes.turns)
    if sizes.stages == 1:
        return _norm(costs, busy, alone + late)
    return _norm(costs, busy, max(alone, late / (sizes.stages - 1)))


def _norm(costs: Costs, *clocks: float) -> float:
    """Times that overlap, though not as a whole."""
    return sum(x**costs.overlap for x in clocks) ** (1 / costs.overlap)
