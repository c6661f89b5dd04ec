"""Schedules for warpgroups (wgmma, sm_90a): tiles that TMA loads, warp roles, clusters, split K.

A form is data: a tile, how consumers share it, a cluster, and parts of K.  Which of them are legal
the passes decide; which is fastest ``explore.warpgroup_cost`` estimates.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from math import ceil, inf, prod

from gemmgen.base.record import record
from gemmgen.explore.request import Request
from gemmgen.explore.suggest.schedules import groups_of
from gemmgen.explore.warpgroup_cost import (
    ATOM_BYTES,
    GROUP,
    THREADS,
    WarpgroupSizes,
    estimate,
    launch_of,
    least,
)
from gemmgen.explore.warpgroup_trees import correction, covers, features
from gemmgen.ir.atoms import ATOMS, VIA
from gemmgen.ir.decompositions import PARTS
from gemmgen.ir.dtypes import BYTES, DType
from gemmgen.ir.exprtext import format_expression
from gemmgen.ir.target import TARGETS
from gemmgen.schedule.formatting import format_schedule

TARGET = "sm_90a"
VECTOR = 16
"""TMA requires rows of a multiple of these bytes."""
MOST_STAGES = 16
BARRIERS = 256
"""Bytes of two mbarriers for each stage."""
ATOM_COLUMNS = (1, 2, 4)
"""Widths of a tile along k, in units of 128 bytes: wide ones take fewer steps."""
CLUSTERS = ((1, 1), (2, 1), (1, 2), (4, 1), (1, 4), (2, 2), (8, 1), (1, 8), (4, 2), (2, 4))
PATTERN = 8
"""Rows after which the pattern of a swizzle repeats."""
MOST_PARTS = 32
RASTER = 8
PART: DType = "bf16"
PRODUCTS = 6
PROMOTE = 64
"""``decompose`` of f32: the products of bf16 terms, and the promotion interval."""
ACCUMULATORS = 192
"""The most registers of a thread for its accumulators and partial accumulators."""
COOPERATIVE = {
    (64, 1): (16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 256),
    (128, 1): (64, 128),
    (128, 2): (32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256),
    (192, 3): (64, 96, 128, 192),
    (256, 2): (64, 96, 128, 160, 192),
}
"""Columns by rows and consumers: each consumer computes an equal share of the rows."""
PINGPONG = {64: (64, 96, 128, 192, 256), 128: (64, 80, 96, 112, 128, 144, 160, 176, 192)}
"""Columns by rows: each of two consumers computes a whole tile."""


@record
class WarpgroupForm:
    """``tile``: rows, columns and elements along k; ``consumers``: warpgroups that multiply;
    ``cluster``: blocks along m and n; ``parts``: of K."""

    tile: tuple[int, int, int]
    consumers: int
    pingpong: bool = False
    cluster: tuple[int, int] = (1, 1)
    parts: int = 1

    @property
    def name(self) -> str:
        return f"{self.tile[0]} x {self.tile[1]}"


@record
class WarpgroupPlan:
    """A form for a request, with what follows for a block: persistence, stages, how C leaves."""

    form: WarpgroupForm
    request: Request
    sizes: WarpgroupSizes

    @property
    def parts(self) -> int:
        return self.form.parts

    @property
    def blocks(self) -> int:
        """Tiles, each once for each part of K."""
        m, n, _, *batches = self.request.shape
        rows, columns, _ = self.form.tile
        return ceil(m / rows) * ceil(n / columns) * prod(batches) * self.parts

    @cached_property
    def modeled(self) -> float:
        """Seconds by the cost model alone; infinite if a block does not fit."""
        return estimate(self.sizes, self.request.shape, self.request.gpu)

    @cached_property
    def seconds(self) -> float:
        """The estimate: the cost model's, corrected by what was learned from measurements, never
        above the GPU's peak rates."""
        if self.modeled == inf or not covers(self.sizes):
            return self.modeled
        corrected = self.modeled * correction(self.features, self.sizes.item[0])
        return max(corrected, least(self.sizes, self.request.shape, self.request.gpu))

    @property
    def features(self) -> tuple[float, ...]:
        """What the correction depends on."""
        request = self.request
        launch = launch_of(self.sizes, request.shape, request.gpu)
        along = request.along["a"] == "k", request.along["b"] == "k"
        us = self.modeled * 1e6
        return features(self.sizes, request.shape, along, request.pitch_bytes, launch, us)

    @cached_property
    def text(self) -> str:
        return "".join(f"{line}\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        problem = replace(self.request.problem, epilogue=None, target=TARGET)
        yield from format_schedule(problem).splitlines()
        yield from self._directives()
        epilogue = self.request.problem.epilogue
        if epilogue is not None:
            yield f"fuse_epilogue {format_expression(epilogue.expression)}"

    def _directives(self) -> Iterator[str]:
        form, (m, n, k) = self.form, self.request.letters
        a, b, c = (self.request.access[role].tensor for role in "abc")
        tiles = f"{a} {b} {c}" if self.sizes.staged else f"{a} {b}"
        rows, columns, along_k = form.tile
        yield f"tile {m}={rows} {n}={columns} {k}={along_k}"
        yield f"cache_shared {tiles}"
        own = rows if form.pingpong else rows // form.consumers
        yield f"warp_tile {m}={own} {n}={columns}"
        if self.request.fast:
            yield "decompose into=bf16"
        yield f"tensor_core via=wgmma{f' promote={PROMOTE}' if self.request.fast else ''}"
        if self.request.width["c"] > 1:
            yield f"vectorize {c} width=2"
        yield f"swizzle {tiles}"
        yield f"double_buffer {a} {b} stages={self.sizes.stages}"
        yield f"async_copy {tiles} via=tma"
        if self.blocks > self.request.gpu.sms:
            yield f"raster group={RASTER}"
        if self.sizes.persistent:
            yield "persistent"
        if self.sizes.producer:
            order = " order=pingpong" if form.pingpong else ""
            yield f"warp_specialize producers=1 consumers={form.consumers}{order}"
        else:
            groups = groups_of(self.parts)
            yield f"split_k parts={self.parts}" + (f" groups={groups}" if groups > 1 else "")
        if form.cluster != (1, 1):
            sides = zip((m, n), form.cluster, strict=True)
            yield "cluster " + " ".join(f"{x}={count}" for x, count in sides if count > 1)
        if not self.request.fast:  # a pre-pass splits the operands before this kernel
            yield "overlap_launch"


def warpgroup_plans(request: Request) -> Iterator[WarpgroupPlan]:
    """The plans for a request that TMA and wgmma can take, estimates and legality aside."""
    if not _takes(request):
        return
    m, n, depth, *batches = request.shape
    elements = ATOM_BYTES // BYTES[_operands(request)[0]]
    for rows, columns, consumers, pingpong in _tiles(m, n):
        tiles = ceil(m / rows) * ceil(n / columns) * prod(batches)
        many = tiles > request.gpu.sms
        for atom_columns in ATOM_COLUMNS[:1] if request.fast else ATOM_COLUMNS:
            if atom_columns > 1 and atom_columns * elements > depth:
                continue
            form = WarpgroupForm((rows, columns, atom_columns * elements), consumers, pingpong)
            sizes = _settled(form, request, many)
            if sizes is None:
                continue
            for cluster in _clusters(form.tile, request) if many or not pingpong else ():
                yield WarpgroupPlan(
                    WarpgroupForm(form.tile, consumers, pingpong, cluster),
                    request,
                    sizes if cluster == (1, 1) else replace(sizes, cluster=cluster),
                )
            if not pingpong and not many:
                for parts in _parts(tiles, ceil(depth / form.tile[2]), request.gpu.sms):
                    yield WarpgroupPlan(
                        replace(form, parts=parts),
                        request,
                        replace(sizes, parts=parts, producer=False),
                    )


def _takes(request: Request) -> bool:
    """Whether wgmma multiplies the types, as they are stored, and TMA takes the rows of A and B;
    rows of parts it always takes."""
    (a, b), acc = _operands(request), request.dtype["acc"]
    atoms = [ATOMS[atom] for atom in VIA["wgmma"] if (a, b, acc) in ATOMS[atom].products]
    if not request.gpu.arch.startswith("sm_90") or not atoms or request.along["c"] != "n":
        return False
    stored = zip("ab", (a, b), strict=True)
    if not all(request.along[x] == "k" or dtype in atoms[0].mn_major for x, dtype in stored):
        return False
    if request.fast:  # one matrix of each operand is split into parts
        return len(request.shape) == len("mnk")
    return all(request.width[x] * BYTES[request.dtype[x]] >= VECTOR for x in "ab")


def _operands(request: Request) -> tuple[DType, DType]:
    """The types that wgmma multiplies."""
    return (PART, PART) if request.fast else (request.dtype["a"], request.dtype["b"])


def _tiles(m: int, n: int) -> Iterator[tuple[int, int, int, bool]]:
    """Rows, columns, consumers and whether they alternate, of tiles not much larger than the
    matrix."""
    most = _reach(m), _reach(n)
    cooperative = ((*key, False, sides) for key, sides in COOPERATIVE.items())
    pingpong = ((rows, 2, True, sides) for rows, sides in PINGPONG.items())
    for rows, consumers, alternate, sides in (*cooperative, *pingpong):
        if rows <= most[0]:
            yield from ((rows, side, consumers, alternate) for side in sides if side <= most[1])


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
    wide = request.width["c"] * item >= VECTOR and form.tile[1] * item % (2 * VECTOR) == 0
    sizes = sizes_of(form, request, persistent=many, staged=wide)
    left = TARGETS[TARGET].shared - sizes.shared - BARRIERS
    stages = min(MOST_STAGES, left // sizes.stage_bytes)
    if stages < 2 or (stages == 2 and not request.fast):
        return None
    accumulators = (
        form.tile[0] // (1 if form.pingpong else form.consumers) * form.tile[1] // THREADS
    )
    if request.fast and 2 * accumulators > ACCUMULATORS:
        return None
    return replace(sizes, stages=stages)


def sizes_of(
    form: WarpgroupForm, request: Request, *, persistent: bool, staged: bool, stages: int = 0
) -> WarpgroupSizes:
    """The sizes of a block; ``persistent``: it computes several tiles, ``staged``: C leaves by TMA.
    Split K has no producer: each block's threads issue TMA themselves."""
    rows, columns, k = form.tile
    item = BYTES[_operands(request)[0]], BYTES[request.dtype["c"]]
    across = GROUP // _width(columns)
    return WarpgroupSizes(
        tile=(rows, columns),
        atom_columns=k * item[0] // ATOM_BYTES,
        consumers=form.consumers,
        producer=form.parts == 1,
        pingpong=form.pingpong,
        cluster=form.cluster,
        stages=stages,
        parts=form.parts,
        persistent=persistent,
        narrow=(1 if request.along["b"] == "k" else across, across),
        staged=staged,
        item=item,
        odd=not request.whole_sectors,
        planes=PARTS if request.fast else 1,
        products=PRODUCTS if request.fast else 1,
    )


def _parts(tiles: int, steps: int, sms: int) -> Iterator[int]:
    """Parts of K that give half a wave of blocks, one, or two; each with two steps or more."""
    found = {max(2, sms * waves // (2 * tiles)) for waves in (1, 2, 4)}
    yield from sorted(parts for parts in found if parts <= min(MOST_PARTS, steps // 2))


def _width(side: int) -> int:
    """Elements of two bytes in a row of a swizzled tile with ``side`` elements."""
    return next(width for width in (64, 32, 16, 8) if side % width == 0)
