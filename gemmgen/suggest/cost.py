"""What a plan costs: a closed form of its sizes, without compiling anything.

A launch takes as long as its rounds of blocks, the last of which has fewer blocks on each
multiprocessor; a block takes a beginning, its steps and an end; a step takes what its warps issue,
what they read of shared memory, or what one of them waits for.  No launch is faster than memory.
``Costs`` has the constants, fitted to times measured on an NVIDIA H200.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, inf

from gemmgen.analyze.gpus import SCHEDULERS, Gpu
from gemmgen.suggest.plan import Plan
from gemmgen.suggest.sizes import LOOP, Sizes, sizes_of

L2_BYTES = 40e6
"""What stays in the L2 cache from one launch to the next."""


@dataclass(frozen=True)
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

    launch: float = 9.64e-07
    first: float = 0.778
    late: float = 142
    barrier: float = 774
    term: float = 10.8
    copy: float = 5.54
    fill: float = 0.228
    idle: float = 0.605
    store: float = 17.8
    meet: float = 1.55e03
    part: float = 3.67
    gather: float = 235
    shuffles: float = 418
    memory: float = 1.29
    cache: float = 0.925
    block: float = 13.9
    lead: float = 0.38


H200 = Costs()


def seconds(plan: Plan, costs: Costs = H200) -> float:
    """Of one launch; infinite where not even one block fits."""
    return estimate(sizes_of(plan), plan.request.gpu, costs)


def estimate(sizes: Sizes, gpu: Gpu, costs: Costs = H200) -> float:
    """Seconds of a launch of such sizes."""
    if not sizes.resident:
        return inf
    rounds, rest = divmod(sizes.blocks, gpu.sms * sizes.resident)
    clocks = rounds * _block(sizes, sizes.resident, costs) if rounds else 0.0
    if rest:
        clocks += _block(sizes, ceil(rest / gpu.sms), costs)
    cache = (gpu.l2 or 4 * gpu.memory) * costs.cache
    slow = gpu.memory * costs.memory if sizes.once > L2_BYTES else cache
    return max(clocks / gpu.clock, sizes.once / slow, sizes.through / cache) + costs.launch


def _block(sizes: Sizes, share: int, costs: Costs) -> float:
    """Clocks of ``share`` blocks side by side on one multiprocessor."""
    tile = sizes.tile * share
    ends = costs.first + costs.store + tile * 4 * sizes.scatter / costs.block
    ahead = min(sizes.stages - 1, sizes.steps) if sizes.stages > 1 else 1
    per = max(1.0, share * sizes.warps / SCHEDULERS)
    ends += costs.lead * ahead * sizes.copies * costs.copy * per
    if sizes.parts > 1:
        added = sizes.parts / sizes.groups + (sizes.groups if sizes.groups > 1 else 0)
        ends += costs.meet * (2 if sizes.groups > 1 else 1)
        ends += added * costs.part * max(1.0, sizes.sums * share / 4)
    if sizes.kind == "lanes":
        ends += costs.shuffles * sizes.sums**0.5
    return sizes.steps * _step(sizes, share, costs) + ends


def _step(sizes: Sizes, share: int, costs: Costs) -> float:
    warps = share * sizes.warps
    per = warps / SCHEDULERS
    issue = sizes.fmas + sizes.reads + sizes.stores + costs.copy * sizes.copies + LOOP
    issue *= max(1.0, per)
    if sizes.kind in ("lanes", "direct"):
        issue = max(issue, costs.fill * sizes.copies * sizes.sparse * warps)
        return issue * (1 + costs.idle / per) + costs.gather
    busy = issue * (1 + costs.idle / max(per, 1.0))
    port = warps * (sizes.port + costs.fill * sizes.copies)
    busy = (busy**3 + port**3) ** (1 / 3)
    busy = max(busy, sizes.terms * costs.term) + costs.barrier
    if sizes.stages == 1:
        return busy + costs.late
    return max(busy, costs.late / (sizes.stages - 1))
