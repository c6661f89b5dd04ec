"""Schedules for warpgroups (wgmma, sm_90a): tiles that TMA loads, warp roles, clusters, split K.

A form is data: a tile, how consumers share it, a cluster, and parts of K.  Which of them are legal
the passes decide; which is fastest ``explore.warpgroup_cost`` estimates.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import ceil, gcd, inf, prod

from gemmgen.explore.request import Request
from gemmgen.explore.suggest.warpgroup_plan import TARGET, WarpgroupForm, WarpgroupPlan
from gemmgen.explore.suggest.warpgroup_tiles import ACCUMULATORS, PATTERN, reach, tiles
from gemmgen.explore.warpgroup_cost import (
    ATOM_BYTES,
    F32,
    GROUP,
    THREADS,
    WarpgroupSizes,
)
from gemmgen.ir.atoms import ATOMS, VIA, AtomTraits
from gemmgen.ir.blocked_letters import block, plain
from gemmgen.ir.decompositions import DECOMPOSITIONS
from gemmgen.ir.dtypes import BYTES, DType
from gemmgen.ir.target import TARGETS
from gemmgen.ir.tensor_map import LANDS_AT

VECTOR = 16
"""TMA requires rows of a multiple of these bytes."""
MOST_STAGES = 16
BARRIERS = 1024
"""Bytes of two mbarriers for each stage, and up to where a swizzled tile begins."""
FEW = 512
"""Rows or columns of C up to which operands other than of 16 bits are swapped, and have columns
that follow from the matrix: larger ones were not measured."""
ATOM_COLUMNS = (1, 2, 4)
"""Widths of a tile along k, in units of 128 bytes: wide ones take fewer steps."""
CLUSTERS = ((1, 1), (2, 1), (1, 2), (4, 1), (1, 4), (2, 2), (8, 1), (1, 8), (4, 2), (2, 4))
MOST_SPLIT = 4
"""The most blocks of a cluster beside split K."""
ENOUGH = 4
"""Stages that a persistent block has at least if C has two slices: they gain 1 to 5% where the
stages stay as many, and lose where few are left (measured on an NVIDIA H200)."""
MOST_PARTS = 32
PARTIAL = 128
"""The most registers for accumulators and partial accumulators of more than two consumers."""
WARP_ROWS = 16
"""Rows of an instruction that a warp has."""
SLOWEST = 1.6
"""How much longer than the fastest one a plan may take by the cost model, before clusters."""


def warpgroup_plans(request: Request) -> Iterator[WarpgroupPlan]:
    """The plans for a request that TMA and wgmma can take, legality aside.  Clusters are considered
    of those that are not much slower than the fastest one without, by the cost model."""
    if not takes_warpgroups(request):
        return
    rows_of_m = [_alone(request, False)] if request.along["c"] == "n" else []
    several = 1 < request.shape[0] <= (inf if _is_measured(request) else FEW)  # one row has lanes
    several |= request.along["c"] == "m"
    # Exchanged operands add the products of terms in another order.
    one_order = request.terms is not None and request.problem.same_bits is not None
    rows_of_n = [_alone(request, True)] if several and not one_order else []
    alone = [plan for plans in (*rows_of_m, *rows_of_n) for plan in plans]
    most = SLOWEST * min((plan.modeled for plan in alone), default=0)
    for plan in alone:
        if plan.modeled <= most:
            yield from _with_clusters(plan)


def _alone(asked: Request, swapped: bool) -> Iterator[WarpgroupPlan]:
    """Those without clusters, with the rows of C, or its columns if the operands are ``swapped``,
    along the rows of the instructions."""
    request = asked.exchanged if swapped else asked
    m, n, depth, *batches = request.shape
    elements = ATOM_BYTES // BYTES[_operands(request)[0]]
    sms, matrices = request.gpu.sms, prod(batches)
    traits = atoms_of_warpgroups(request)[0]
    lines = PATTERN
    if request.along["b"] == "n":  # its rows in shared memory are whole sectors
        lines = max(lines, 2 * VECTOR // BYTES[_operands(request)[1]])
    fitting = "waves" if _is_measured(request) else "shares" if swapped or n <= FEW else "none"
    for rows, columns, consumers, pingpong in tiles(
        m, n, matrices, sms=sms, traits=traits, lines=lines, fitting=fitting
    ):
        count = ceil(m / rows) * ceil(n / columns) * matrices
        many = count > sms
        if pingpong and not many:
            continue
        for atom_columns in ATOM_COLUMNS[:1] if request.terms else ATOM_COLUMNS:
            if atom_columns > 1 and atom_columns * elements > depth:
                continue
            if request.scaled_terms % (atom_columns * elements):
                continue
            tile = rows, columns, atom_columns * elements
            form = WarpgroupForm(tile, consumers, pingpong, swapped=swapped)
            sizes = _settled(form, request, many)
            if sizes is None:
                continue
            yield WarpgroupPlan(form, asked, sizes)
            if not pingpong and not many and asked.problem.same_bits is None:
                for parts in _parts(count, ceil(depth / tile[2]), sms):
                    split = replace(sizes, parts=parts)
                    yield WarpgroupPlan(replace(form, parts=parts), asked, split)


def _is_measured(request: Request) -> bool:
    """Whether tiles that fill waves, of either operand, were measured with these types."""
    return BYTES[_operands(request)[0]] == 2 and request.terms is None


def _with_clusters(plan: WarpgroupPlan) -> Iterator[WarpgroupPlan]:
    """The plan, and with each cluster."""
    form, sizes = plan.form, plan.sizes
    # Scaled accumulators gained nothing from clusters (measured on an NVIDIA H200).
    for cluster in CLUSTERS[:1] if sizes.promoted else _clusters(form.tile, plan.oriented):
        if form.parts == 1 or prod(cluster) <= MOST_SPLIT:
            shared = replace(sizes, cluster=cluster)
            yield WarpgroupPlan(replace(form, cluster=cluster), plan.request, shared)


def takes_warpgroups(request: Request) -> bool:
    """Whether wgmma multiplies the types, as they are stored, and TMA takes the rows of A and B;
    rows of parts it always takes."""
    (a, b), atoms = _operands(request), atoms_of_warpgroups(request)
    if not request.gpu.arch.startswith("sm_90") or not atoms:
        return False
    stored = zip("ab", (a, b), strict=True)
    if not all(request.along[x] == "k" or dtype in atoms[0].mn_major for x, dtype in stored):
        return False
    if request.terms:  # one matrix of each operand is split into parts
        return len(request.shape) == len("mnk")
    return all(request.width[x] * BYTES[request.dtype[x]] >= VECTOR for x in "ab")


def atoms_of_warpgroups(request: Request) -> list[AtomTraits]:
    """Those of wgmma that multiply the types."""
    types = (*_operands(request), request.dtype["acc"])
    return [ATOMS[atom] for atom in VIA["wgmma"] if types in ATOMS[atom].products]


def _operands(request: Request) -> tuple[DType, DType]:
    """The types that wgmma multiplies."""
    return (
        (request.terms, request.terms)
        if request.terms
        else (request.dtype["a"], request.dtype["b"])
    )


def _clusters(tile: tuple[int, int, int], request: Request) -> Iterator[tuple[int, int]]:
    """Blocks along m and n whose tiles are not much larger than the matrix, and whose shares of a
    tile are whole rows of 128 bytes."""
    (rows, columns, _), (m, n) = tile, request.shape[:2]
    most = reach(m) // rows, reach(n) // columns
    for along_m, along_n in CLUSTERS:
        divides = rows % along_n == 0 and (request.along["b"] == "n" or columns % along_m == 0)
        if divides and along_m <= most[0] and along_n <= most[1]:
            yield along_m, along_n


def _settled(form: WarpgroupForm, request: Request, many: bool) -> WarpgroupSizes | None:
    """The sizes with as many stages as fit, and C by TMA if its rows allow it; None where a load
    is not hidden: two stages or fewer, where each is of whole operands.

    TMA swizzles rows of a multiple of 32 bytes, and cuts them into boxes of 128, 64 or 32 bytes.
    One box of whole rows that are not swizzled took .83 to .90 of the time of boxes of 32 bytes,
    but with ping-pong consumers up to 1.07 (measured on an NVIDIA H200)."""
    item = BYTES[request.dtype["c"]]
    row = form.tile[0 if form.swapped else 1] * item
    wide = request.width["c"] * item >= VECTOR and row % VECTOR == 0
    plain = row % (2 * VECTOR if form.pingpong else 4 * VECTOR) != 0
    sizes = sizes_of(form, request, persistent=many, staged=wide, plain=plain)
    left = TARGETS[TARGET].shared - sizes.shared - BARRIERS
    stages = min(MOST_STAGES, left // sizes.stage_bytes)
    if stages < 2 or (stages == 2 and not request.terms):
        return None
    accumulators = (
        form.tile[0] // (1 if form.pingpong else form.consumers) * form.tile[1] // THREADS
    )
    most = PARTIAL if request.scaled_terms and form.consumers > 2 else ACCUMULATORS
    if (request.terms or request.scaled_terms) and 2 * accumulators > most:
        return None
    return _two_slices(replace(sizes, stages=stages), form)


def _two_slices(sizes: WarpgroupSizes, form: WarpgroupForm) -> WarpgroupSizes:
    """With two slices of C: TMA stores one while the next is written.  A tile must have an even
    number of them, and the stages must still fit, or a persistent block keep ``ENOUGH``.  Not where
    a warpgroup's swapped operands have more than 64 rows: it took 1.6 times as long."""
    height = sizes.slice_rows
    along = form.tile[1] if form.swapped else GROUP
    slower = form.swapped and not form.pingpong and form.tile[0] // form.consumers > GROUP
    if not sizes.staged or slower or along % (2 * height):
        return sizes
    twice = replace(sizes, slices=2)
    left = TARGETS[TARGET].shared - (twice.shared - twice.stages * twice.stage_bytes) - BARRIERS
    stages = min(sizes.stages, left // sizes.stage_bytes)
    if stages < sizes.stages and not (sizes.persistent and stages >= ENOUGH):
        return sizes
    twice = replace(twice, stages=stages)
    return twice if twice.resident == sizes.resident else sizes


def sizes_of(
    form: WarpgroupForm,
    request: Request,
    *,
    persistent: bool,
    staged: bool,
    stages: int = 0,
    slices: int = 1,
    plain: bool = False,
) -> WarpgroupSizes:
    """The sizes of a block with a producer; ``persistent``: it computes several tiles, ``staged``:
    C leaves by TMA, from one of ``slices`` buffers, which are not swizzled if ``plain``."""
    rows, columns, k = form.tile
    item = BYTES[_operands(request)[0]], BYTES[request.dtype["c"]]
    across = GROUP // _width(columns)
    across_c = GROUP // _width(rows) if form.swapped else across
    scales = tuple(_scales(form, request))
    return WarpgroupSizes(
        tile=(rows, columns),
        atom_columns=k * item[0] // ATOM_BYTES,
        consumers=form.consumers,
        producer=True,
        pingpong=form.pingpong,
        cluster=form.cluster,
        stages=stages,
        parts=form.parts,
        persistent=persistent,
        narrow=(1 if request.along["b"] == "k" else across, 1 if plain else across_c),
        staged=staged,
        item=item,
        odd=not request.whole_sectors,
        planes=DECOMPOSITIONS[request.terms].parts if request.terms else 1,
        products=DECOMPOSITIONS[request.terms].products[0] if request.terms else 1,
        swapped=form.swapped,
        slices=slices,
        plain=staged and plain,
        promoted=request.scaled_terms > 0,
        factors=sum(bytes_ for bytes_, _, _ in scales),
        scales_read=(sum(x for _, x, _ in scales), sum(x for _, _, x in scales)),
    )


def _scales(form: WarpgroupForm, request: Request) -> Iterator[tuple[int, int, int]]:
    """Of the scales of each operand: bytes that TMA copies into a stage, if neighbouring rows, or
    columns, have neighbours; and those that a thread reads from global memory, and from there."""
    gemm, (m, n, _) = request.problem.gemm, request.letters
    rows, columns, _ = form.tile
    own = rows // (1 if form.pingpong else form.consumers)
    # A thread has two rows of 64, and two columns of 8.
    sides = {
        gemm.a.tensor: (m, rows, own // GROUP * WARP_ROWS, WARP_ROWS, 2),
        gemm.b.tensor: (n, columns, columns, PATTERN, 2),
    }
    for scale in gemm.scales:
        letter, side, of_warp, run, each = sides[scale.of]
        elements = next(block(x) for x in scale.indices if plain(x) == letter)
        window = gcd(elements, of_warp)
        read = of_warp // window if window % run == 0 else of_warp // run * each
        in_ring = scale.indices[-1] == letter
        found = -(-side * F32 // LANDS_AT) * LANDS_AT if in_ring else 0
        yield found, 0 if in_ring else read, read if in_ring else 0


def _parts(tiles: int, steps: int, sms: int) -> Iterator[int]:
    """Parts of K that give half a wave of blocks, one, or two; each with two steps or more."""
    found = {max(2, sms * waves // (2 * tiles)) for waves in (1, 2, 4)}
    yield from sorted(parts for parts in found if parts <= min(MOST_PARTS, steps // 2))


def _width(side: int) -> int:
    """Elements of two bytes in a row of a swizzled tile with ``side`` elements."""
    return next(width for width in (64, 32, 16, 8) if side % width == 0)
