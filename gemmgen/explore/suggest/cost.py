"""The cost model: the time of a plan as a closed form of its sizes, without compiling it.

The time of a launch is that of its waves, the last of which has fewer blocks on each
multiprocessor; a block has a prologue, steps along k and an end; a step is bound by its issue
slots, by shared memory traffic, or by latency.  Memory bandwidth bounds the whole.  ``Costs`` has
the constants, which ``benchmarks/suggest_fit.py`` fitted to times measured on an NVIDIA H200.
"""

from __future__ import annotations

from math import ceil, inf

from gemmgen.analyze.gpus import SCHEDULERS, Gpu
from gemmgen.base.record import record
from gemmgen.explore.suggest.schedules import SettledForm
from gemmgen.explore.suggest.sizes import LOOP, Sizes, sizes_of

L2_BYTES = 40e6
"""The share of the L2 cache that is kept from one launch to the next."""
MEMORY = 0.8
"""The share of the peak bandwidth that memory reaches."""
EXACT = 0.97
"""The time of a launch without guards, as a share of one with them."""
LIMIT = 3
"""The exponent of the norm that combines arithmetic and memory time."""


@record
class Costs:
    """Constants of the model, in clocks unless said otherwise.

    A launch
        ``launch``: seconds from one launch to the next of an empty kernel.
    A block
        ``first``: before its first step and after its last one.  ``lead``: the share of a tile's
        copies that the first step waits for, per prefetched tile.  ``store``: bytes of C that a
        multiprocessor writes in a clock.  ``squeeze``: the relative loss if its threads have fewer
        registers than they could use.
    A step
        ``late``: the latency of a copy.  ``barrier``: clocks in addition to the instructions of a
        warp.  ``ring``: the relative loss of a step if one tile is prefetched; a quarter of it for
        two.  ``overlap``: the exponent of the norm that combines times: 1 adds them, infinity takes
        the maximum.
    An access, in issue slots of a warp
        ``copy``: from global to shared memory.  ``turn``: the same, transposed, an element at a
        time.  ``load``: from global memory to registers, stored to shared memory later.  ``bare``:
        from global memory to registers as operands.  ``bank``: clocks of shared memory, relative
        to those without conflicts.
    Split-K
        ``meet``: the last block of a tile finds out that it is the last.  ``part``: it adds 4
        elements of a partial sum per thread.  ``handed``: the time of writing and reading partial
        sums, relative to the L2 cache's bandwidth.  ``gather``: a step of a warp that splits k,
        from its reads to its sums.  ``shuffles``: the warp's reduction of one sum.
    """

    launch: float = 3.24e-07
    first: float = 1100
    lead: float = 0.429
    store: float = 15.9
    squeeze: float = 0.0338
    late: float = 617
    barrier: float = 264
    ring: float = 0.0558
    overlap: float = 3.08
    copy: float = 13
    turn: float = 14.8
    load: float = 43.3
    bare: float = 15.2
    bank: float = 1.21
    meet: float = 1570
    part: float = 30
    handed: float = 0.843
    gather: float = 502
    shuffles: float = 170


H200 = Costs()


def seconds(plan: SettledForm, costs: Costs = H200) -> float:
    """The time of one launch; infinite if no block fits on a multiprocessor."""
    guards = EXACT if plan.exact else 1.0
    return estimate(sizes_of(plan), plan.request.gpu, costs) * guards


def estimate(sizes: Sizes, gpu: Gpu, costs: Costs = H200) -> float:
    """Seconds of a launch with these sizes."""
    if not sizes.resident:
        return inf
    rounds, rest = divmod(sizes.blocks, gpu.sms * sizes.resident)
    clocks = rounds * _block(sizes, sizes.resident, costs)
    if rest:
        clocks += _block(sizes, ceil(rest / gpu.sms), costs)
    clocks *= 1 + costs.squeeze if sizes.squeezed else 1
    cache = gpu.l2 or 4 * gpu.memory
    slow = gpu.memory * MEMORY if sizes.once > L2_BYTES else cache
    moved = max(sizes.once / slow, sizes.through / cache)
    handed = costs.handed * sizes.handed / cache
    return ((clocks / gpu.clock + handed) ** LIMIT + moved**LIMIT) ** (1 / LIMIT) + costs.launch


def _block(sizes: Sizes, share: int, costs: Costs) -> float:
    """Clocks of ``share`` concurrent blocks on one multiprocessor."""
    return sizes.steps * _step(sizes, share, costs) + _ends(sizes, share, costs)


def _ends(sizes: Sizes, share: int, costs: Costs) -> float:
    """Clocks before the first step and after the last one."""
    ends = costs.first + 4 * sizes.tile * share * sizes.scatter / costs.store
    ahead = min(sizes.stages - 1, sizes.steps) if sizes.stages > 1 else 1
    per = max(1.0, share * sizes.warps / SCHEDULERS)
    ends += costs.lead * ahead * per * _moves(sizes, costs)
    if sizes.parts > 1:
        added = sizes.parts / sizes.groups + (sizes.groups if sizes.groups > 1 else 0)
        ends += costs.meet * (2 if sizes.groups > 1 else 1)
        ends += costs.part * added * max(1.0, sizes.sums * share / 4)
    if sizes.kind == "lanes":
        ends += costs.shuffles * sizes.sums**0.5
    return ends


def _step(sizes: Sizes, share: int, costs: Costs) -> float:
    """Clocks of a step of ``share`` blocks: bound by issue slots, or by latency."""
    warps = share * sizes.warps
    per, own = max(1.0, warps / SCHEDULERS), max(1.0, sizes.warps / SCHEDULERS)
    bare = sizes.kind in ("lanes", "direct")
    issue = sizes.fmas + sizes.reads + sizes.stores + _moves(sizes, costs) + LOOP
    if bare:
        return _together(costs, issue * per, issue * own + costs.gather)
    busy = _together(costs, issue * per, warps * sizes.port * costs.bank)
    alone = issue * own + costs.barrier
    if sizes.stages == 1:
        return _together(costs, busy, alone + costs.late)
    ahead = sizes.stages - 1
    return _together(costs, busy, max(alone, costs.late / ahead)) * (1 + costs.ring / ahead**2)


def _moves(sizes: Sizes, costs: Costs) -> float:
    """Issue slots of a warp's accesses of global memory in a step."""
    each = costs.load if sizes.stores else costs.copy
    if sizes.kind in ("lanes", "direct"):
        each = costs.bare
    return each * sizes.copies + costs.turn * sizes.transposes


def _together(costs: Costs, *clocks: float) -> float:
    """Times that overlap in part: a norm of them."""
    return sum(x**costs.overlap for x in clocks) ** (1 / costs.overlap)
