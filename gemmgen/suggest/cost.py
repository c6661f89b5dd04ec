"""What a plan costs: a closed form, without compiling anything."""

from __future__ import annotations

from math import ceil, prod

from gemmgen.analyze.gpus import REGISTERS, SCHEDULERS
from gemmgen.ir.dtypes import BYTES
from gemmgen.suggest.plan import Plan
from gemmgen.target import MAX_REGISTERS, OVERHEAD, TARGETS, WARP

LAUNCH = 1.7e-6
LATENCY, BARRIER, SHARED = 600.0, 30.0, 30.0
TENSOR = 10.0


def blocks_of(plan: Plan) -> int:
    m, n, _, *batches = plan.request.shape
    rows, columns, _ = plan.form.tile
    return ceil(m / rows) * ceil(n / columns) * prod(batches) * plan.parts


def shared_of(plan: Plan) -> int:
    """Bytes of a block's tiles."""
    m, n, k = plan.form.tile
    total = 0
    for role in plan.staged:
        item = BYTES[plan.request.dtype(role)]
        size = m if role == "a" else n
        if plan.form.kind == "tensor":
            along = plan.request.along(role)
            rows, row = (size, k) if along == "k" else (k, size)
            total += rows * (row + 8) * item
        else:
            pad = 16 // item if plan.turned(role) else 0
            total += k * (size + pad) * item
    total *= plan.form.stages
    if plan.form.kind == "tensor":
        total += plan.form.threads // WARP * 16 * (plan.form.warp[1] + 8) * 4
    return total


def registers_of(plan: Plan) -> int:
    form, wide = plan.form, BYTES[plan.request.dtype("acc")] // 4
    m, n = form.micro
    if form.kind == "tensor":
        m, n = form.warp
        return OVERHEAD + m * n // WARP + (m + n) * 2
    if form.kind == "lanes":
        terms = form.tile[2] // WARP
        return OVERHEAD + wide * (m * n + (m + n) * terms)
    waiting = 0
    if not plan.asynchronous:
        waiting = sum(form.tile["ab".index(r)] * form.tile[2] for r in plan.staged) // form.threads
    return OVERHEAD + wide * (m * n + 2 * (m + n)) + waiting


def residents(plan: Plan) -> int:
    form, gpu = plan.form, plan.request.gpu
    shared = shared_of(plan)
    target = TARGETS[gpu.arch]
    if shared > target.shared or form.threads > 1024:
        return 0
    each = min(registers_of(plan), MAX_REGISTERS)
    if form.blocks:
        each = min(each, REGISTERS // (form.threads * form.blocks))
    by_shared = gpu.shared // (shared + gpu.reserved) if shared else gpu.blocks
    return min(
        REGISTERS // (each * form.threads), by_shared, gpu.threads // form.threads, gpu.blocks
    )


def seconds(plan: Plan) -> float:
    """An estimate of one launch; infinite where not even one block fits."""
    gpu, form = plan.request.gpu, plan.form
    m, n, k, *batches = plan.request.shape
    resident = residents(plan)
    if not resident:
        return float("inf")
    blocks = blocks_of(plan)
    share = min(resident, ceil(blocks / gpu.sms))
    rounds = max(blocks / (gpu.sms * share), 1.0)
    rounds = ceil(rounds) if rounds < 3 else rounds + 0.5
    steps = ceil(ceil(k / form.tile[2]) / plan.parts)
    clocks = rounds * (steps * _step(plan, share) + _ends(plan, share))
    a, b, c = (BYTES[plan.request.dtype(role)] for role in "abc")
    size = (a * m * k + b * k * n + c * m * n) * prod(batches)
    through = (
        prod(plan.request.shape)
        * (b / form.tile[0] + a / form.tile[1])
        / (gpu.l2 or 4 * gpu.memory)
    )
    bandwidth = size / (0.85 * gpu.memory if size > 40e6 else (gpu.l2 or 4 * gpu.memory))
    return max(clocks / gpu.clock, bandwidth, through * 1.1) + LAUNCH


def _step(plan: Plan, share: int) -> float:
    form = plan.form
    m, n, k = form.tile
    rows, columns = form.micro
    warps = form.threads / WARP
    each = max(1.0, share * warps / SCHEDULERS)
    if form.kind == "lanes":
        terms = k // WARP
        issue = terms * rows * columns
        for role, count in (("a", rows), ("b", columns)):
            width = plan.load(role)
            sectors = (
                1
                if plan.request.along(role) == "k" or plan.request.shape["ab".index(role)] == 1
                else 8
            )
            issue += 3 * terms * count / width * sectors
        return issue * each * 1.3 + LATENCY
    if form.kind == "direct":
        return k * (rows * columns + 3 * (rows + columns)) * each + LATENCY
    if form.kind == "tensor":
        sums = form.warp[0] * form.warp[1] // WARP
        issue = k * sums / TENSOR + k / 16 * (form.warp[0] + form.warp[1]) / 16 * 16
    else:
        issue = k * (rows * columns + sum(x / (x & -x if x < 4 else 4) for x in form.micro))
    loads = 0.0
    for role in "ab":
        count = (m if role == "a" else n) * k / form.threads
        if role in plan.staged:
            loads += 3 * count / plan.load(role) + (
                count if plan.through and plan.turned(role) else 0
            )
        else:
            loads += 3 * k * (rows if role == "a" else columns)
    issue += loads + 14
    alone = 0.35
    per = share * warps / SCHEDULERS
    busy = issue * each * (1 + alone / max(per, 0.5))
    busy = (busy**3 + (share * warps * _port(plan)) ** 3) ** (1 / 3)
    late = max(0.0, LATENCY - (form.stages - 1) * busy) / max(1, form.stages - 1)
    return busy + late + BARRIER


def _port(plan: Plan) -> float:
    """Clocks of shared memory for a warp in a step: reads of 16 bytes take 2, or 4 where more than
    8 of a warp's threads read different places."""
    form = plan.form
    if form.kind != "block":
        return 0.0
    total = 0.0
    for at, role in enumerate("ab"):
        width = plan.read(role)
        lanes = form.warp[at] // form.micro[at]
        clocks = 1.0 if width < 4 else 2.0 if lanes <= 8 else 4.0
        total += form.tile[2] * form.micro[at] / width * clocks
        total += (
            form.tile[at]
            * form.tile[2]
            / form.threads
            / plan.load(role)
            * (4 if plan.load(role) > 1 else 1)
        )
    return total


def _ends(plan: Plan, share: int) -> float:
    tile = plan.form.tile[0] * plan.form.tile[1] * share
    extra = 0.0
    if plan.parts > 1:
        added = plan.parts / plan.groups + (plan.groups if plan.groups > 1 else 0)
        extra = tile * 4 * (1 + added) / 32 + 2.5 * LATENCY
        if plan.groups > 1:
            extra += 1.5 * LATENCY
    lanes = 150.0 if plan.form.kind == "lanes" else 0.0
    return 1.5 * LATENCY + tile * 4 / 32 + extra + lanes
