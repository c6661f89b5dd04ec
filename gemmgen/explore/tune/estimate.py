"""A cheap estimate of a kernel's time, which ranks points so that promising ones are tried first.

It counts the issue slots of a block and divides them by how well latencies are hidden; it never
excludes a point.  Latencies are those of an NVIDIA H200, from its measured ladder: other GPUs
differ, but rank points much the same.
"""

from __future__ import annotations

from math import ceil, prod

from gemmgen.analyze.gpus import REGISTERS, SCHEDULERS, Gpu
from gemmgen.analyze.launch_arguments import Shape
from gemmgen.explore.tune.footprint import Facts, OperandTraffic
from gemmgen.ir.occupancy import allowed_registers
from gemmgen.ir.target import WARP

BARRIER, MEMORY, SHARED = 40.0, 700.0, 30.0
"""Clocks: of a barrier; the latencies of global and of shared memory."""
LAUNCH = 2e-6
"""Seconds between two launches."""
INSTRUCTIONS = 3.0
"""Issue slots of an access with its address computation and its guard."""
LOOP = 12.0
"""Issue slots of a step in addition to its accesses: counters, stages, the branch."""
BANKS = 0.03
"""The share of multiply-adds with register bank conflicts if none reuse operands."""
SPILL, SQUEEZE, MEMORIES = 2.0, 0.05, 15.0
"""The slowdown of a kernel that needs twice the registers it may have; the share that compilers
save; the slowdown if so many are missing (``MISSING``) that arrays go to local memory."""
MISSING = 0.5
ALONE = 0.3
"""The share of a scheduler's slots that one warp leaves empty: dependent instructions."""
SHARPNESS = 3.0
"""The exponent of the norm that combines issue and shared memory time (infinity: full overlap)."""
TENSOR = 10.0
"""Multiply-adds of tensor cores in the time of one FMA of a thread, by ``mma.sync``."""
PART, WIDE = 4, 32
"""Bytes of a sum in a workspace; bytes that a multiprocessor stores in a clock."""


def estimate(facts: Facts, shape: Shape, gpu: Gpu) -> float:
    """Seconds of one launch at ``shape`` (M, N, K, batches) on ``gpu``."""
    m, n, k, *batches = shape
    rows, columns, step = facts.tile
    blocks = block_count(facts, shape)
    resident = residents(facts, gpu)
    if not resident:
        return float("inf")
    steps = ceil(ceil(k / step) / facts.parts)
    share = min(resident, -(-blocks // gpu.sms))
    rounds = -(-blocks // (gpu.sms * share))
    clocks = rounds * (steps * _step(facts, share, gpu) + _ends(facts, share)) * _spilled(facts)
    a, b = facts.a.bytes, facts.b.bytes
    compulsory = (a * m * k + b * k * n + facts.element * m * n) * prod(batches) / gpu.memory
    through = prod(shape) * (b / rows + a / columns) / (gpu.l2 or 4 * gpu.memory)
    through *= 1.0 if facts.raster > 1 else 1.1
    return max(clocks / gpu.clock, compulsory, through) + LAUNCH


def waves(facts: Facts, shape: Shape, gpu: Gpu) -> float:
    """Blocks of a launch, divided by those that the GPU holds at once."""
    return block_count(facts, shape) / (gpu.sms * max(1, residents(facts, gpu)))


def block_count(facts: Facts, shape: Shape) -> int:
    """Blocks of a launch."""
    rows, columns, _ = facts.tile
    return ceil(shape[0] / rows) * ceil(shape[1] / columns) * facts.parts * prod(shape[3:])


def residents(facts: Facts, gpu: Gpu) -> int:
    """Resident blocks per multiprocessor; 0 if none fits."""
    registers = REGISTERS // (min(facts.registers, allowance(facts)) * facts.threads)
    taken = facts.shared + gpu.reserved
    return min(
        registers, gpu.shared // taken if taken else gpu.blocks, gpu.threads // facts.threads
    )


def allowance(facts: Facts) -> int:
    """Registers that a thread may have; more of them are spilled."""
    return allowed_registers(facts.threads, facts.blocks)


def ffma_share(facts: Facts) -> float:
    """The share of issue slots in a step that multiply-adds take."""
    useful = facts.tile[2] * facts.micro
    return useful / (useful + _overhead(facts))


def intensity(facts: Facts) -> float:
    """Multiply-adds for each element that a block reads."""
    rows, columns, _ = facts.tile
    return rows * columns / (rows + columns)


def _overhead(facts: Facts) -> float:
    """Issue slots of a thread in a step without its multiply-adds."""
    step = facts.tile[2]
    reads = sum(x.micro / x.read if x.tile else INSTRUCTIONS * x.micro for x in (facts.a, facts.b))
    moved = sum(_moves(x, facts) for x in (facts.a, facts.b))
    return step * reads + moved + LOOP


def _moves(x: OperandTraffic, facts: Facts) -> float:
    each = x.tile / facts.threads
    if facts.asynchronous:
        return INSTRUCTIONS * each / x.load
    return INSTRUCTIONS * each / x.load + each / x.store


def _step(facts: Facts, share: int, gpu: Gpu) -> float:
    """Clocks of a step of ``share`` blocks on one multiprocessor."""
    step = facts.tile[2]
    warps = share * facts.threads / WARP
    each = max(1.0, warps / SCHEDULERS)  # warps don't move between schedulers
    filled = _filled(warps / SCHEDULERS)
    fmas = step * facts.micro * each * max(1.0, SCHEDULERS * WARP / _lanes(facts, gpu))
    fmas *= 1.0 if facts.reuse else 1.0 + BANKS
    fmas /= TENSOR if facts.tensor else 1.0
    port = warps * sum(_port(x, facts) for x in (facts.a, facts.b))
    busy = ((fmas + _overhead(facts) * each) / filled) ** SHARPNESS + port**SHARPNESS
    busy **= 1 / SHARPNESS
    return busy + _waits(facts, busy, share, each)


def _lanes(facts: Facts, gpu: Gpu) -> int:
    return gpu.double_lanes if facts.double else gpu.lanes


def _filled(warps: float) -> float:
    """The share of its slots that a scheduler fills with so many warps; below one, some schedulers
    have none."""
    return warps / (warps + ALONE) * min(1.0, warps) ** 0.4


def _spilled(facts: Facts) -> float:
    """The slowdown by spilled registers."""
    over = facts.registers / allowance(facts) - 1.0 - SQUEEZE
    return MEMORIES if over > MISSING else 1.0 + SPILL * max(0.0, over)


def _port(x: OperandTraffic, facts: Facts) -> float:
    """Clocks of shared memory for a warp in a step: fragments read, tiles stored."""
    if not x.tile:
        return facts.tile[2] * x.micro * 2.0
    reads = facts.tile[2] * x.micro / x.read
    clocks = 1.0 if x.read * x.bytes < 16 else 2.0 if x.lanes <= 8 else 4.0
    return reads * clocks + x.tile / facts.threads / x.store * max(x.ways, x.store)


def _waits(facts: Facts, busy: float, share: int, each: float) -> float:
    """Clocks in which none of a scheduler's ``each`` warps can issue."""
    lag = 0.0
    if not facts.ahead:
        hidden = (each - 1) * facts.micro / 2
        lag = facts.tile[2] * max(0.0, SHARED - hidden) * 0.5
    late = MEMORY if facts.stages == 1 else max(0.0, MEMORY - (facts.stages - 1) * busy)
    return lag + late / share + BARRIER / share


def _ends(facts: Facts, share: int) -> float:
    """Clocks of a block's first load, its stores and its reduction of partial sums."""
    tile = facts.tile[0] * facts.tile[1] * share
    added = facts.parts / facts.groups + (facts.groups if facts.groups > 1 else 0)
    parts = tile * PART * (1 + added) / WIDE + 2 * MEMORY if facts.parts > 1 else 0.0
    return 2 * MEMORY + tile * facts.element / WIDE + parts
