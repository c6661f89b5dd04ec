"""Schedules for warpgroups (wgmma, sm_90a): tiles that TMA loads, warp roles, clusters, split K.

A form is data: a tile, how consumers share it, a cluster, and parts of K.  Which of them are legal
the passes decide; which is fastest ``explore.warpgroup_cost`` estimates.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import ceil, prod

from gemmgen.explore.request import Request
from gemmgen.explore.suggest.warpgroup_plan import TARGET, WarpgroupForm, WarpgroupPlan
from gemmgen.explore.warpgroup_cost import (
    ATOM_BYTES,
    GROUP,
    THREADS,
    WarpgroupSizes,
)
from gemmgen.ir.atoms import ATOMS, VIA, AtomTraits
from gemmgen.ir.decompositions import DECOMPOSITIONS
from gemmgen.ir.dtypes import BYTES, DType
from gemmgen.ir.target import TARGETS

VECTOR = 16
"""TMA requires rows of a multiple of these bytes."""
MOST_STAGES = 16
BARRIERS = 256
"""Bytes of two mbarriers for each stage."""
ATOM_COLUMNS = (1, 2, 4)
"""Widths of a tile along k, in units of 128 bytes: wide ones take fewer steps."""
CLUSTERS = ((1, 1), (2, 1), (1, 2), (4, 1), (1, 4), (2, 2), (8, 1), (1, 8), (4, 2), (2, 4))
MOST_SPLIT = 4
"""The most blocks of a cluster beside split K."""
ENOUGH = 4
"""Stages that a persistent block has at least if C has two slices: they gain 1 to 5% where the
stages stay as many, and lose where few are left (measured on an NVIDIA H200)."""
PATTERN = 8
"""Rows after which the pattern of a swizzle repeats."""
MOST_PARTS = 32
ACCUMULATORS = 192
"""The most registers of a thread for its accumulators and partial accumulators."""
COOPERATIVE = {
    (64, 1): (16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 256),
    (128, 1): (64, 128),
    (128, 2): (32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256),
    (192, 3): (32, 48, 64, 96, 128, 160, 192),
    (256, 2): (64, 96, 128, 160, 192),
}
"""Columns by rows and consumers: each consumer computes an equal share of the rows."""
SNUG = ((64, 1, False), (128, 2, False), (128, 1, False), (64, 2, True), (128, 2, True))
"""Rows, consumers and whether they alternate, of tiles whose columns follow from the matrix."""
SHARES = (1, 2, 3, 4)
NARROWEST, WIDEST = 8, 256
"""Columns of a tile."""
FEW_COLUMNS = 512
"""Columns of C up to which tiles are considered whose columns follow from the matrix."""
FEW_ROWS = 512
"""Rows of C up to which plans with swapped operands are considered; a single one has lanes."""
PINGPONG = {64: (64, 96, 128, 192, 256), 128: (64, 80, 96, 112, 128, 144, 160, 176, 192)}
"""Columns by rows: each of two consumers computes a whole tile."""


def warpgroup_plans(request: Request) -> Iterator[WarpgroupPlan]:
    """The plans for a request that TMA and wgmma can take, estimates and legality aside."""
    if not takes_warpgroups(request):
        return
    if request.along["c"] == "n":
        yield from _plans(request, False)
    if 1 < request.shape[0] <= FEW_ROWS or request.along["c"] == "m":
        yield from _plans(request, True)


def _plans(asked: Request, swapped: bool) -> Iterator[WarpgroupPlan]:
    """Those with the rows of C, or its columns if the operands are ``swapped``, along the rows of
    the instructions."""
    request = asked.exchanged if swapped else asked
    m, n, depth, *batches = request.shape
    elements = ATOM_BYTES // BYTES[_operands(request)[0]]
    tiles = () if swapped else _tiles(m, n)
    snug = _snug_tiles(request) if swapped or n <= FEW_COLUMNS else ()
    for rows, columns, consumers, pingpong in dict.fromkeys((*tiles, *snug)):
        count = ceil(m / rows) * ceil(n / columns) * prod(batches)
        many = count > request.gpu.sms
        for atom_columns in ATOM_COLUMNS[:1] if request.terms else ATOM_COLUMNS:
            if atom_columns > 1 and atom_columns * elements > depth:
                continue
            tile = rows, columns, atom_columns * elements
            form = WarpgroupForm(tile, consumers, pingpong, swapped=swapped)
            sizes = _settled(form, request, many)
            if sizes is None:
                continue
            for cluster in _clusters(form.tile, request) if many or not pingpong else ():
                yield WarpgroupPlan(
                    replace(form, cluster=cluster),
                    asked,
                    sizes if cluster == (1, 1) else replace(sizes, cluster=cluster),
                )
            if not pingpong and not many and asked.problem.same_bits is None:
                for parts in _parts(count, ceil(depth / form.tile[2]), request.gpu.sms):
                    for cluster in _clusters(form.tile, request):
                        if prod(cluster) <= MOST_SPLIT:
                            yield WarpgroupPlan(
                                replace(form, parts=parts, cluster=cluster),
                                asked,
                                replace(sizes, parts=parts, cluster=cluster),
                            )


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


def _tiles(m: int, n: int) -> Iterator[tuple[int, int, int, bool]]:
    """Rows, columns, consumers and whether they alternate, of tiles not much larger than the
    matrix."""
    most = _reach(m), _reach(n)
    cooperative = ((*key, False, sides) for key, sides in COOPERATIVE.items())
    pingpong = ((rows, 2, True, sides) for rows, sides in PINGPONG.items())
    for rows, consumers, alternate, sides in (*cooperative, *pingpong):
        if rows <= most[0]:
            yield from ((rows, side, consumers, alternate) for side in sides if side <= most[1])


def _snug_tiles(request: Request) -> Iterator[tuple[int, int, int, bool]]:
    """The same where the columns, in steps of 8, are n or an equal share of it."""
    m, n, *_ = request.shape
    (traits, *_), columns = atoms_of_warpgroups(request), set[int]()
    for count in SHARES:
        side = -(-ceil(n / count) // PATTERN) * PATTERN
        row = side * BYTES[_operands(request)[1]]  # in shared memory, if B is contiguous along n
        narrow = request.along["b"] == "n" and row % (2 * VECTOR)
        side += PATTERN if traits.columns(side) < side or narrow else 0
        columns |= {side} if NARROWEST <= side <= WIDEST else set()
    for rows, consumers, alternate in SNUG:
        if rows <= _reach(m):
            for side in sorted(columns):
                if rows // (1 if alternate else consumers) * side // THREADS <= ACCUMULATORS:
                    yield rows, side, consumers, alternate


def _clusters(tile: tuple[int, int, int], request: Request) -> Iterator[tuple[int, int]]:
    """Blocks along m and n whose tiles are not much larger than the matrix, and whose shares of a
    tile are whole rows of the swizzle's pattern, 8 of them."""
    (rows, columns, _), (m, n) = tile, request.shape[:2]
    most = _reach(m) // rows, _reach(n) // columns
    for along_m, along_n in CLUSTERS:
        divides = rows % (PATTERN * along_n) == 0 and columns % (PATTERN * along_m) == 0
        if divides and along_m <= most[0] and along_n <= most[1]:
            yield along_m, along_n


def _reach(size: int) -> int:
    """The most rows or columns of a tile, or of a cluster's tiles, for a matrix with ``size``."""
    return max(GROUP, 2 * size)


def _settled(form: WarpgroupForm, request: Request, many: bool) -> WarpgroupSizes | None:
    """The sizes with as many stages as fit, and C by TMA if its rows allow it; None where a load
    is not hidden: two stages or fewer, where each is of whole operands."""
    item = BYTES[request.dtype["c"]]
    row = form.tile[0 if form.swapped else 1] * item
    wide = request.width["c"] * item >= VECTOR and row % (2 * VECTOR) == 0
    sizes = sizes_of(form, request, persistent=many, staged=wide)
    left = TARGETS[TARGET].shared - sizes.shared - BARRIERS
    stages = min(MOST_STAGES, left // sizes.stage_bytes)
    if stages < 2 or (stages == 2 and not request.terms):
        return None
    accumulators = (
        form.tile[0] // (1 if form.pingpong else form.consumers) * form.tile[1] // THREADS
    )
    if request.terms and 2 * accumulators > ACCUMULATORS:
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
) -> WarpgroupSizes:
    """The sizes of a block with a producer; ``persistent``: it computes several tiles, ``staged``:
    C leaves by TMA, from one of ``slices`` buffers."""
    rows, columns, k = form.tile
    item = BYTES[_operands(request)[0]], BYTES[request.dtype["c"]]
    across = GROUP // _width(columns)
    across_c = GROUP // _width(rows) if form.swapped else across
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
        narrow=(1 if request.along["b"] == "k" else across, across_c),
        staged=staged,
        item=item,
        odd=not request.whole_sectors,
        planes=DECOMPOSITIONS[request.terms].parts if request.terms else 1,
        products=DECOMPOSITIONS[request.terms].products[0] if request.terms else 1,
        swapped=form.swapped,
        slices=slices,
    )


def _parts(tiles: int, steps: int, sms: int) -> Iterator[int]:
    """Parts of K that give half a wave of blocks, one, or two; each with two steps or more."""
    found = {max(2, sms * waves // (2 * tiles)) for waves in (1, 2, 4)}
    yield from sorted(parts for parts in found if parts <= min(MOST_PARTS, steps // 2))


def _width(side: int) -> int:
    """Elements of two bytes in a row of a swizzled tile with ``side`` elements."""
    return next(width for width in (64, 32, 16, 8) if side % width == 0)
