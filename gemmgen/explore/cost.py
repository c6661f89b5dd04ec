"""The cost model of ``suggest`` and ``tune``: the time of a launch in closed form of its sizes.

The time of a launch is the time of its waves, and the last wave has fewer blocks per
multiprocessor; a block has a prologue, steps along k and an end; a step is bound by its issue
slots, by shared memory traffic, or by latency.  Memory bandwidth bounds the whole.  ``Costs`` has
the constants, which ``benchmarks/suggest_fit.py`` fitted to times measured on an NVIDIA H200.
None of these kernels used TMA.  For TMA, issue slots and registers are counted, a wait at a stage's
mbarrier is assumed to take as long as ``__syncthreads``, and the first tile as long as any other.
``suggest`` takes a block's sizes from a plan, ``tune`` from a compiled program.
"""

from __future__ import annotations

from math import ceil, inf, prod
from typing import Literal

from gemmgen.base.record import record
from gemmgen.gpu.gpus import MIB, REGISTERS, SCHEDULERS, Gpu
from gemmgen.ir.dtypes import DType
from gemmgen.ir.target import WARP

Kind = Literal["block", "lanes", "direct", "tensor"]
SECTOR = 8
"""Elements of 4 bytes in a sector."""
LOOP = 14
"""Issue slots of a step in addition to its accesses: counters, stages, the branch."""
TENSOR = 10.0
"""Multiply-adds of halves by tensor cores in the time of one FMA of a thread, by issue slots of a
warp."""
KEPT = 40e6 / (60 * MIB)
"""The share of the L2 cache that is kept from one launch to the next."""
MEMORY = 0.8
"""The share of the peak bandwidth that memory reaches."""
LIMIT = 3
"""The exponent of the norm that combines arithmetic and memory time."""
MULTIPLIED = 1351.68
"""Multiply-adds a clock and SM of halves by ``mma.sync`` that ``TENSOR`` was fitted to."""
LANES = 128
"""Multiply-adds a clock of a multiprocessor that ``BlockSizes.fmas`` are counted for."""


@record
class BlockSizes:
    """Sizes of a block, whatever the extents; a step's counts are those of a warp.

    ``registers`` of a thread are estimated, and ``allowed`` are those that the launch bounds leave
    it.  ``fmas``, ``reads`` of fragments, ``copies`` (accesses of global memory), ``transposes``
    (the same, of single elements of a transposed tile) and ``stores`` into shared memory are issue
    slots; ``port`` are clocks of shared memory, ``waits`` those in which a warp alone waits for it.
    ``accumulators``: of a thread.  ``scatter``: sectors touched by a store of C, relative to a
    coalesced one.  ``through``: bytes that blocks read for a multiply-add.  ``bytes``: of an
    element of A, B and C; ``operands``: the type of A.  ``spills``: the slowdown by missing
    registers.
    ``producers``: threads of the producer, which take no part in a step.  ``boxes``: TMA copies
    tiles.
    """

    kind: Kind
    tile: tuple[int, int, int]
    threads: int
    shared: int
    registers: int
    allowed: int
    fmas: float
    reads: float
    copies: float
    transposes: float
    stores: float
    port: float
    stages: int
    accumulators: int
    parts: int
    groups: int
    scatter: float
    through: float
    bytes: tuple[int, int, int]
    double: bool
    waits: float = 0.0
    spills: float = 1.0
    operands: DType = "f32"
    producers: int = 0
    boxes: bool = False

    @property
    def warps(self) -> int:
        return ceil((self.threads - self.producers) / WARP)


@record
class Sizes:
    """Sizes of a launch: ``once``: bytes of the matrices; ``through``: bytes that blocks read;
    ``handed``: bytes of partial sums that are written and read again."""

    block: BlockSizes
    blocks: int
    resident: int
    steps: int
    fmas: float
    once: float
    through: float
    handed: float


def launched(block: BlockSizes, shape: tuple[int, ...], gpu: Gpu) -> Sizes:
    """The sizes of a launch of such blocks at ``shape`` (M, N, K, batches)."""
    m, n, k, *batches = shape
    (rows, columns, step), (a, b, c) = block.tile, block.bytes
    blocks = ceil(m / rows) * ceil(n / columns) * prod(batches) * block.parts
    lanes = gpu.double_lanes if block.double else gpu.lanes
    slower = LANES / lanes
    if block.kind == "tensor":
        slower = MULTIPLIED / _reached(gpu, block.operands)
    return Sizes(
        block,
        blocks,
        residents(block.threads, block.shared, min(block.registers, block.allowed), gpu),
        steps=ceil(ceil(k / step) / block.parts),
        fmas=block.fmas * slower,
        once=float(a * m * k + b * k * n + c * m * n) * prod(batches),
        through=prod(shape) * block.through,
        handed=8.0 * blocks * rows * columns if block.parts > 1 else 0.0,
    )


def _reached(gpu: Gpu, operands: DType) -> float:
    """Multiply-adds a clock and SM of instructions of a warp, on tensor cores."""
    return gpu.tensor_lanes(operands) * gpu.through_mma(operands)


def residents(threads: int, shared: int, registers: int, gpu: Gpu) -> int:
    """Resident blocks per multiprocessor; 0 if none fits."""
    taken = shared + gpu.reserved
    return min(
        REGISTERS // (registers * threads),
        gpu.shared // taken if taken else gpu.blocks,
        gpu.threads // threads,
        gpu.blocks,
    )


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
        from its reads to its accumulators.  ``shuffles``: the warp's reduction of one accumulator.
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


def estimate(sizes: Sizes, gpu: Gpu, costs: Costs = H200) -> float:
    """Seconds of a launch with these sizes; infinite if no block fits on a multiprocessor."""
    if not sizes.resident:
        return inf
    block = sizes.block
    rounds, rest = divmod(sizes.blocks, gpu.sms * sizes.resident)
    clocks = rounds * _block(sizes, sizes.resident, costs)
    if rest:
        clocks += _block(sizes, ceil(rest / gpu.sms), costs)
    clocks *= (1 + costs.squeeze if block.registers > block.allowed else 1) * block.spills
    cache = gpu.l2 or 4 * gpu.memory
    slow = gpu.memory * MEMORY if sizes.once > KEPT * gpu.cache else cache
    moved = max(sizes.once / slow, sizes.through / cache)
    handed = costs.handed * sizes.handed / cache
    return ((clocks / gpu.clock + handed) ** LIMIT + moved**LIMIT) ** (1 / LIMIT) + costs.launch


def _block(sizes: Sizes, share: int, costs: Costs) -> float:
    """Clocks of ``share`` concurrent blocks on one multiprocessor."""
    return sizes.steps * _step(sizes, share, costs) + _ends(sizes, share, costs)


def _ends(sizes: Sizes, share: int, costs: Costs) -> float:
    """Clocks before the first step and after the last one."""
    block = sizes.block
    tile = block.tile[0] * block.tile[1]
    ends = costs.first + 4 * tile * share * block.scatter / costs.store
    ahead = min(block.stages - 1, sizes.steps) if block.stages > 1 else 1
    per = max(1.0, share * block.warps / SCHEDULERS)
    ends += costs.late if block.boxes else costs.lead * ahead * per * _moves(block, costs)
    if block.parts > 1:
        added = block.parts / block.groups + (block.groups if block.groups > 1 else 0)
        ends += costs.meet * (2 if block.groups > 1 else 1)
        ends += costs.part * added * max(1.0, block.accumulators * share / 4)
    if block.kind == "lanes":
        ends += costs.shuffles * block.accumulators**0.5
    return ends


def _step(sizes: Sizes, share: int, costs: Costs) -> float:
    """Clocks of a step of ``share`` blocks: bound by issue slots, or by latency."""
    block = sizes.block
    warps = share * block.warps
    per, own = max(1.0, warps / SCHEDULERS), max(1.0, block.warps / SCHEDULERS)
    issue = issue_slots(sizes, costs)
    if block.kind in ("lanes", "direct"):
        return _together(costs, issue * per, issue * own + costs.gather)
    busy = _together(costs, issue * per, warps * block.port * costs.bank)
    alone = issue * own + costs.barrier + block.waits
    if block.stages == 1:
        return _together(costs, busy, alone + costs.late)
    ahead = block.stages - 1
    return _together(costs, busy, max(alone, costs.late / ahead)) * (1 + costs.ring / ahead**2)


def issue_slots(sizes: Sizes, costs: Costs = H200) -> float:
    """Of a warp in a step."""
    block = sizes.block
    return sizes.fmas + block.reads + block.stores + _moves(block, costs) + LOOP


def _moves(block: BlockSizes, costs: Costs) -> float:
    """Issue slots of a warp's accesses of global memory in a step."""
    each = costs.load if block.stores else costs.copy
    if block.kind in ("lanes", "direct"):
        each = costs.bare
    return each * block.copies + costs.turn * block.transposes


def _together(costs: Costs, *clocks: float) -> float:
    """Times that overlap in part: a norm of them."""
    return sum(x**costs.overlap for x in clocks) ** (1 / costs.overlap)
