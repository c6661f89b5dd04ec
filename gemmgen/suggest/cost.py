"""What a plan costs: a closed form of its sizes, without compiling anything.

A launch takes as long as its rounds of blocks, the last of which has fewer blocks on each
multiprocessor; a block takes a beginning, its steps and an end; a step takes what its warps issue,
what they read of shared memory, or what one of them waits for.  No launch is faster than memory.
``Costs`` has the constants, fitted to times measured on an NVIDIA H200.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, inf, prod

from gemmgen.analyze.gpus import REGISTERS, SCHEDULERS
from gemmgen.ir.dtypes import BYTES
from gemmgen.suggest.plan import Plan
from gemmgen.target import MAX_REGISTERS, MAX_THREADS, OVERHEAD, TARGETS, WARP

TENSOR_PAD, ALIGNED = 8, 16


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

    launch: float = 1.7e-6
    first: float = 900.0
    late: float = 600.0
    barrier: float = 30.0
    term: float = 8.0
    copy: float = 3.0
    idle: float = 0.35
    store: float = 400.0
    meet: float = 1500.0
    part: float = 12.0
    gather: float = 600.0
    shuffles: float = 120.0
    memory: float = 0.85
    cache: float = 0.8
    block: float = 40.0


H200 = Costs()


def blocks_of(plan: Plan) -> int:
    """Blocks of a launch."""
    m, n, _, *batches = plan.request.shape
    rows, columns, _ = plan.form.tile
    return ceil(m / rows) * ceil(n / columns) * prod(batches) * plan.parts


def shared_of(plan: Plan) -> int:
    """Bytes of a block's tiles, all stages."""
    m, n, k = plan.form.tile
    tensor = plan.form.kind == "tensor"
    total = 0
    for role in plan.staged:
        item, size = BYTES[plan.request.dtype(role)], m if role == "a" else n
        if tensor:
            rows, row = (size, k) if plan.request.along(role) == "k" else (k, size)
            total += rows * (row + TENSOR_PAD) * item
        else:
            total += k * (size + (ALIGNED // item if plan.turned(role) else 0)) * item
    total *= plan.form.stages
    if tensor:
        total += plan.form.threads // WARP * 16 * (plan.form.warp[1] + TENSOR_PAD) * 4
    return total


def registers_of(plan: Plan) -> int:
    """Registers of a thread, about: sums, two fragments of each operand, waiting pieces."""
    form, wide = plan.form, BYTES[plan.request.dtype("acc")] // 4
    m, n = form.warp if form.kind == "tensor" else form.micro
    if form.kind == "tensor":
        return OVERHEAD + m * n // WARP + (m + n) * 2
    if form.kind == "lanes":
        return OVERHEAD + wide * (m * n + (m + n) * form.tile[2] // WARP)
    waiting = 0
    if not plan.asynchronous:
        waiting = sum(form.tile["ab".index(r)] * form.tile[2] for r in plan.staged) // form.threads
    return OVERHEAD + wide * (m * n + 2 * (m + n)) + waiting


def residents(plan: Plan) -> int:
    """Blocks that a multiprocessor holds at once; 0 where not even one fits."""
    form, gpu = plan.form, plan.request.gpu
    shared = shared_of(plan)
    if shared > TARGETS[gpu.arch].shared or form.threads > MAX_THREADS:
        return 0
    each = min(registers_of(plan), MAX_REGISTERS)
    if form.blocks:
        each = min(each, REGISTERS // (form.threads * form.blocks))
    taken = shared + gpu.reserved
    return min(
        REGISTERS // (each * form.threads),
        gpu.shared // taken if taken else gpu.blocks,
        gpu.threads // form.threads,
        gpu.blocks,
    )


def seconds(plan: Plan, costs: Costs = H200) -> float:
    """Of one launch; infinite where not even one block fits."""
    gpu, resident, blocks = plan.request.gpu, residents(plan), blocks_of(plan)
    if not resident:
        return inf
    rounds, rest = divmod(blocks, gpu.sms * resident)
    clocks = rounds * _block(plan, resident, costs) if rounds else 0.0
    if rest:
        clocks += _block(plan, ceil(rest / gpu.sms), costs)
    return max(clocks / gpu.clock, _traffic(plan, costs)) + costs.launch


def _traffic(plan: Plan, costs: Costs) -> float:
    """Seconds that memory and the L2 cache need at the least."""
    gpu, request = plan.request.gpu, plan.request
    m, n, k, *batches = request.shape
    a, b, c = (BYTES[request.dtype(role)] for role in "abc")
    once = (a * m * k + b * k * n + c * m * n) * prod(batches)
    cache = gpu.l2 or 4 * gpu.memory
    rows, columns = min(plan.form.tile[0], m), min(plan.form.tile[1], n)
    through = prod(request.shape) * (b / rows + a / columns)
    slow = gpu.memory * costs.memory if once > L2_BYTES else cache * costs.cache
    return max(once / slow, through / (cache * costs.cache))


L2_BYTES = 40e6
"""What stays in the L2 cache from one launch to the next."""


def _block(plan: Plan, share: int, costs: Costs) -> float:
    """Clocks of ``share`` blocks side by side on one multiprocessor."""
    form = plan.form
    steps = ceil(ceil(plan.request.shape[2] / form.tile[2]) / plan.parts)
    tile = form.tile[0] * form.tile[1] * share
    ends = costs.first + costs.store + tile * 4 / costs.block
    if plan.parts > 1:
        added = plan.parts / plan.groups + (plan.groups if plan.groups > 1 else 0)
        ends += costs.meet * (2 if plan.groups > 1 else 1)
        ends += added * costs.part * max(1.0, tile / form.threads / 4)
    if form.kind == "lanes":
        ends += costs.shuffles * form.micro[0] * form.micro[1] ** 0.5
    return steps * _step(plan, share, costs) + ends


def _step(plan: Plan, share: int, costs: Costs) -> float:
    form = plan.form
    warps = share * form.threads / WARP
    per = warps / SCHEDULERS
    each = max(1.0, per)
    issue = _issue(plan, costs) * each
    if form.kind in ("lanes", "direct"):
        return issue * (1 + costs.idle / per) + costs.gather
    busy = issue * (1 + costs.idle / max(per, 1.0))
    busy = (busy**3 + (warps * _port(plan)) ** 3) ** (1 / 3)
    busy = max(busy, form.tile[2] * costs.term) + costs.barrier
    ahead = form.stages - 1
    return max(busy, costs.late / ahead)


TENSOR = 10.0
"""Multiply-adds of tensor cores for one of a thread's, by instructions of one warp."""


def _issue(plan: Plan, costs: Costs) -> float:
    """Issue slots of a warp in a step."""
    form = plan.form
    k, (rows, columns) = form.tile[2], form.micro
    if form.kind == "lanes":
        terms = k // WARP
        total = float(terms * rows * columns)
        for role, count in (("a", rows), ("b", columns)):
            total += costs.copy * terms * count / plan.load(role)
        return total
    if form.kind == "tensor":
        rows, columns = form.warp
        total = k * rows * columns / WARP / TENSOR + k * (rows + columns) / 16
    else:
        total = float(k * rows * columns)
        for role, count in (("a", rows), ("b", columns)):
            total += k * count / plan.read(role) if role in plan.staged else 0.0
    for role in "ab":
        if role in plan.staged:
            count = form.tile["ab".index(role)] * k / form.threads
            total += costs.copy * count / plan.load(role)
            total += count if plan.turned(role) and not plan.asynchronous else 0.0
        else:
            total += costs.copy * k * form.micro["ab".index(role)] / plan.load(role)
    return total + 14


def _port(plan: Plan) -> float:
    """Clocks of shared memory for a warp in a step: reads of 16 bytes take 2, or 4 where more than
    8 of a warp's threads read different places."""
    form = plan.form
    if form.kind != "block":
        return 0.0
    total = 0.0
    for at, role in enumerate("ab"):
        width, load = plan.read(role), plan.load(role)
        lanes = form.warp[at] // form.micro[at]
        clocks = 1.0 if width < 4 else 2.0 if lanes <= 8 else 4.0
        total += form.tile[2] * form.micro[at] / width * clocks
        total += form.tile[at] * form.tile[2] / form.threads / load * (4 if load > 1 else 1)
    return total
