"""The cost model of kernels whose warpgroups multiply tiles that TMA loads (wgmma).

A block (CTA) computes a tile of C in steps along K.  A step is bound by the tensor cores, by the
bytes that arrive in a block's shared memory, by those that L2 delivers to all blocks, by the blocks
that read the same lines of L2 at a time, or by the latency of a load over the stages in flight.  A
cluster reads a tile from L2 once for all of its blocks (multicast).  A tile ends with an epilogue;
with ping-pong consumers one consumer's epilogue overlaps the other's main loop.  Energy bounds
large products: the power limit lowers the clock, so what counts is energy per multiply-add and per
byte moved.

``benchmarks/warpgroup_fit.py`` fits ``WarpgroupCosts`` to times measured on an NVIDIA H200
(``docs/data/warpgroups.json``), and cross-validates the choice.

Over 300 lines: the sizes, the constants, and the one formula that they enter.
"""

from __future__ import annotations

from math import ceil, inf, log2, prod

from gemmgen.base.record import record
from gemmgen.gpu.gpus import MIB, REGISTERS, Gpu
from gemmgen.ir.target import TARGETS

ATOM_BYTES = 128
"""Bytes along k that one swizzle atom holds: a tile is one or more of them wide."""
GROUP = 64
"""Rows of one wgmma."""
THREADS = 128
"""Of a warpgroup."""
SLICE = 32
"""Rows of C that a consumer stages in shared memory at a time."""
PIECES = 2
"""Pieces of 8 columns of the instructions that consumers stage at a time, if their number is
even, where C's rows are these columns."""
HELD = {1: 132, 2: 132, 4: 120, 8: 120}
"""SMs that clusters fill, by their blocks: 66, 30 and 15 clusters of 2, 4 and 8 blocks are active
at once on an NVIDIA H200 (the driver's occupancy query), since a cluster lies in one GPC."""
WHOLE = 132
"""SMs that ``HELD`` is of."""
CLOCK = 1.98e9
"""Of the GPU that the constants were fitted to."""
POWER = 600 / 700
"""The share of the power limit that arithmetic and data movement may use."""
F32 = 4
"""Bytes of an element."""
KEPT = 40e6 / (60 * MIB)  # the share of the L2 cache that stays from one launch to the next


@record
class WarpgroupSizes:
    """Sizes of a block.

    ``tile``: rows and columns; ``atom_columns``: its width along k in units of 128 bytes.
    ``consumers``: warpgroups that multiply; ``producer``: whether one more warpgroup issues TMA.
    ``pingpong``: each consumer computes every other tile.  ``cluster``: blocks along m and n that
    share tiles of B and A by multicast.  ``parts``: blocks that split the K of a tile (split-K).
    ``narrow``: by how many times the rows of a tile of B that is contiguous along n, and those of
    the staged C, are narrower than 128 bytes.  ``staged``: C leaves through shared memory by TMA.
    ``item``: bytes of an element of A and B, and of C.  ``odd``: rows of C do not begin at
    multiples of 32 bytes.  ``planes``: tiles of each operand in a stage, one for each bf16 term of
    its elements (``decompose``); ``products``: the pairs of terms that are multiplied.
    ``slices``: of the staged C, in shared memory at a time (``double_buffer C``), not swizzled if
    ``plain``.
    ``swapped``: C's rows are the columns of the instructions; m, n, A and B are then n, m, B and A
    in all that is said here.
    ``promoted``: accumulators are scaled and promoted in each step; ``factors``: bytes of the
    scales that a stage holds; ``scales_read``: by a thread in a step, from global memory and from
    the stage.
    """

    tile: tuple[int, int]
    atom_columns: int
    consumers: int
    producer: bool
    pingpong: bool
    cluster: tuple[int, int]
    stages: int
    parts: int
    persistent: bool
    narrow: tuple[int, int]
    staged: bool
    item: tuple[int, int]
    odd: bool
    planes: int = 1
    products: int = 1
    swapped: bool = False
    slices: int = 1
    plain: bool = False
    promoted: bool = False
    factors: int = 0
    scales_read: tuple[int, int] = (0, 0)

    @property
    def stage_bytes(self) -> int:
        return sum(self.tile) * ATOM_BYTES * self.atom_columns * self.planes + self.factors

    def steps(self, depth: int) -> int:
        """Steps of a block along K = ``depth``."""
        tiles = ceil(depth * self.item[0] / (ATOM_BYTES * self.atom_columns))
        return ceil(tiles / self.parts)

    @property
    def shared(self) -> int:
        """Bytes of the stages and of the slices of C."""
        return self.stages * self.stage_bytes + (self._slices if self.staged else 0)

    @property
    def _slices(self) -> int:
        """Bytes of the slices of C."""
        rows, columns = self.tile
        if not self.swapped:
            return self.slices * self.consumers * SLICE * columns * self.item[1]
        return self.slices * (1 + self.pingpong) * self.slice_rows * rows * self.item[1]

    @property
    def slice_rows(self) -> int:
        """Rows of C in a slice of a consumer."""
        return SLICE if not self.swapped else 8 * (1 if self.tile[1] // 8 % PIECES else PIECES)

    @property
    def resident(self) -> int:
        """Blocks of an SM at once."""
        target = TARGETS["sm_90a"]
        threads = THREADS * (self.consumers + self.producer)
        fit = target.all_shared // (self.shared + target.reserved)
        return 1 if self.persistent else max(1, min(fit, REGISTERS // (threads * 168)))


@record
class WarpgroupCosts:
    """Constants, in clocks unless said otherwise.

    ``launch``: microseconds from one launch to the next; ``begin``: clocks of a launch before its
    first step, ``meet`` more for each doubling of the cluster, up to ``fill`` more if A, B and C
    do not fit in L2.  ``latency`` of a TMA load, larger by the share ``meet_latency`` for each
    doubling of the cluster.  ``operand``: clocks of a wgmma to read A from shared memory;
    ``narrow_b``: by how much reading B costs more for each halving of its rows.  ``arrive`` and
    ``l2``: bytes a clock that one SM takes from L2, and that L2 delivers in all; bytes outside the
    matrix, which TMA fills with zeros, cost ``outside`` times as much more.  ``reader``: of each
    block that reads the same lines of L2, in proportion where a tile has fewer than ``lines``.
    ``step``: of a step in addition to its loads and arithmetic, ``alone`` more without a producer.
    ``tile``: of a tile's epilogue; ``store``: bytes of C a clock; ``narrow_c``, ``odd``: by how
    much storing them costs more.  ``split``: of split K; ``reduced``: elements of the slices of a
    tile that are added in a clock.  ``flop``: picojoules of one of a multiply-add's two operations,
    ``byte`` of a byte from L2.  ``memory``: TB/s.  ``norm``: the exponent that combines what
    overlaps.  ``promote``: of a promotion in addition to its adds.  ``split_launch``: microseconds
    of a kernel that splits an operand into parts, which moves ``split_rate`` TB/s; these three and
    ``lines`` are not fits.  Where accumulators are scaled: ``scaled`` of a promotion in addition
    to its adds, by ``alternating`` times as much with ping-pong consumers; ``global_scale`` and
    ``shared_scale`` of a thread's read of a scale; ``scaled_end``: the share of an epilogue that
    does not overlap (fitted apart, to ``docs/data/block_scales.json``).
    """

    launch: float = 0.191
    begin: float = 852
    meet: float = 491
    fill: float = 5810
    latency: float = 2400
    meet_latency: float = 0.0642
    operand: float = 16.0
    narrow_b: float = 2.17
    arrive: float = 91.3
    l2: float = 4660
    outside: float = 4.13
    reader: float = 6.78
    lines: float = 64
    step: float = 71.8
    alone: float = 58.1
    tile: float = 1480
    store: float = 12.4
    narrow_c: float = 0.338
    odd: float = 0.0991
    split: float = 2370
    reduced: float = 8.64
    flop: float = 0.309
    byte: float = 40.0
    memory: float = 4.0
    norm: float = 8.0
    promote: float = 150
    split_launch: float = 2.0
    split_rate: float = 3.5
    scaled: float = 20
    alternating: float = 1.53
    global_scale: float = 65
    shared_scale: float = 24
    scaled_end: float = 0.36


H200 = WarpgroupCosts()


def estimate(
    sizes: WarpgroupSizes, shape: tuple[int, ...], gpu: Gpu, costs: WarpgroupCosts = H200
) -> float:
    """Seconds of a launch at ``shape`` (M, N, K, batches); infinite if a block does not fit."""
    if sizes.shared > TARGETS["sm_90a"].shared:
        return inf
    m, n, k, *batches = shape
    launch = launch_of(sizes, shape, gpu)
    steps = sizes.steps(k)
    (rows, columns), (along_m, along_n) = sizes.tile, sizes.cluster
    used = min(m, rows), min(n, columns)
    from_l2 = (
        (used[0] / along_n + used[1] / along_m) * ATOM_BYTES * sizes.atom_columns * sizes.planes
    )
    main = steps * _step(sizes, used, launch, from_l2, costs)
    stored = used[0] * used[1] * sizes.item[1] * launch.share / costs.store
    if sizes.staged:
        stored *= 1 + costs.narrow_c * (sizes.narrow[1] - 1)
    end = costs.tile + stored * (1 + costs.odd * sizes.odd)
    end *= costs.scaled_end if sizes.promoted else 1
    clocks = launch.waves * (main + end)
    if sizes.pingpong:
        clocks = max(launch.waves * main + end, ceil(launch.waves / 2) * (main + end))
    once = _bytes(sizes, shape)
    in_cache = once / (KEPT * gpu.cache)
    doublings = log2(along_m * along_n)
    clocks += costs.begin + costs.meet * doublings + costs.fill * min(1.0, in_cache)
    if sizes.parts > 1:
        clocks += costs.split + sizes.parts * used[0] * used[1] / costs.reduced
    seconds = clocks / (gpu.clock * 1.85e9 / CLOCK) + costs.launch * 1e-6
    products = (
        launch.blocks
        * rows
        * columns
        * steps
        * ATOM_BYTES
        * sizes.atom_columns
        / 2
        * sizes.products
    )
    energy = (2 * products * costs.flop + launch.blocks * steps * from_l2 * costs.byte) * 1e-12
    memory = once / (costs.memory * 1e12 * (1 if in_cache > 1 else 2) * gpu.memory / 4.8e12)
    front = 0.0
    if sizes.planes > 1:
        split = (F32 + sizes.item[0] * sizes.planes) * (m * k + n * k) * prod(batches)
        front = 2e-6 * costs.split_launch + split / (costs.split_rate * 1e12 * gpu.memory / 4.8e12)
    return front + _norm(costs.norm, seconds, energy / (POWER * gpu.power), memory)


def least(sizes: WarpgroupSizes, shape: tuple[int, ...], gpu: Gpu) -> float:
    """Seconds below which no launch at ``shape`` stays: of its products at the peak rate, and, if
    they exceed the L2 cache, of A, B and C at the bandwidth of device memory."""
    m, n, k, *batches = shape
    lanes = 2 * gpu.sm.halves / sizes.item[0]
    products = m * n * k * prod(batches) * sizes.products / (lanes * gpu.sms * gpu.clock)
    outside = _bytes(sizes, shape)
    return max(products, outside / gpu.memory if outside > gpu.cache else 0.0)


def _bytes(sizes: WarpgroupSizes, shape: tuple[int, ...]) -> float:
    m, n, k, *batches = shape
    return float(sizes.item[0] * (m * k + n * k) + sizes.item[1] * m * n) * prod(batches)


@record
class BlockLaunch:
    """A grid of ``blocks``: ``active`` run at a time, ``share`` on an SM, in this many ``waves``.
    ``readers``: blocks that load the same tile of A, and of B, from L2; a cluster counts once."""

    blocks: int
    active: float
    share: int
    waves: int
    readers: tuple[float, float]


def launch_of(sizes: WarpgroupSizes, shape: tuple[int, ...], gpu: Gpu) -> BlockLaunch:
    """The blocks of a launch at ``shape`` (M, N, K, batches)."""
    m, n, _, *batches = shape
    (rows, columns), (along_m, along_n) = sizes.tile, sizes.cluster
    across = ceil(ceil(m / rows) / along_m) * along_m, ceil(ceil(n / columns) / along_n) * along_n
    blocks = prod(across) * prod(batches) * sizes.parts
    places = HELD[along_m * along_n] * gpu.sms / WHOLE
    share = min(sizes.resident, ceil(blocks / places))
    active = min(blocks, places * share)
    readers = min(across[1], active) / along_n, min(across[0], active) / along_m
    return BlockLaunch(blocks, active, share, ceil(blocks / (places * share)), readers)


def _step(
    sizes: WarpgroupSizes,
    used: tuple[int, int],
    launch: BlockLaunch,
    from_l2: float,
    costs: WarpgroupCosts,
) -> float:
    """Clocks of a step of the blocks of an SM; ``used``: rows and columns within the matrix."""
    rows, columns = sizes.tile
    read = costs.operand + columns / 4 * (1 + costs.narrow_b * (sizes.narrow[0] - 1))
    multiplied = 4 * sizes.atom_columns * rows / GROUP * max(columns / 2, read) * sizes.products
    if sizes.planes > 1:  # each sum of a step is added to the total by a thread
        multiplied += costs.promote + rows / GROUP * columns / 2
    if sizes.promoted:
        multiplied += _scaled(sizes, costs)
    lines = sum(used) + costs.outside * (rows + columns - sum(used))
    doublings = log2(sizes.cluster[0] * sizes.cluster[1])
    bound = _norm(
        costs.norm,
        multiplied * launch.share,
        lines * ATOM_BYTES * sizes.atom_columns * sizes.planes * launch.share / costs.arrive,
        from_l2 * launch.active / costs.l2,
        costs.reader * _readers(used, launch, costs) * sizes.atom_columns * sizes.planes,
        costs.latency * (1 + costs.meet_latency * doublings) / max(1, sizes.stages - 1),
    )
    return bound + costs.step + (0 if sizes.producer else costs.alone)


def _scaled(sizes: WarpgroupSizes, costs: WarpgroupCosts) -> float:
    """Clocks of a step in which threads scale and add accumulators, and read the scales; the more
    consumers there are, the more of them multiply in the meantime."""
    (rows, columns), (of_global, of_stage) = sizes.tile, sizes.scales_read
    added = (costs.scaled + rows / GROUP * columns / 2) * 2 / sizes.consumers
    added *= costs.alternating if sizes.pingpong else 1
    return added + costs.global_scale * of_global + costs.shared_scale * of_stage


def _readers(used: tuple[int, int], launch: BlockLaunch, costs: WarpgroupCosts) -> float:
    """Blocks that read the same lines of L2: fewer count where these lines are few."""
    pairs = zip(launch.readers, used, strict=True)
    return max(readers * min(1.0, lines / costs.lines) for readers, lines in pairs)


def _norm(exponent: float, *values: float) -> float:
    """Nearly the maximum; scaled by it, so that no power overflows."""
    largest = max(values)
    return largest * sum((x / largest) ** exponent for x in values) ** (1 / exponent)
