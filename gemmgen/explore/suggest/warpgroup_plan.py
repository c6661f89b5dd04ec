"""A plan for warpgroups: a form, its sizes at a request, its estimate and its schedule."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from math import ceil, inf, prod

from gemmgen.base.record import record
from gemmgen.explore.request import Request
from gemmgen.explore.suggest.schedules import groups_of
from gemmgen.explore.warpgroup_cost import WarpgroupSizes, estimate, launch_of, least
from gemmgen.explore.warpgroup_trees import correction, covers, features
from gemmgen.ir.dtypes import DType
from gemmgen.ir.exprtext import format_expression
from gemmgen.schedule.formatting import format_schedule

TARGET = "sm_90a"
PROMOTE: dict[DType, int] = {"bf16": 64, "f16": 128}
"""The promotion interval of ``decompose``, by the type of the terms."""
RASTER = 8


@record
class WarpgroupForm:
    """``tile``: rows and columns of the instructions, and elements along k; ``consumers``:
    warpgroups that multiply; ``cluster``: blocks along the rows and the columns; ``parts``: of K.
    ``swapped``: the rows are n and the columns are m (``tensor_core rows=n``)."""

    tile: tuple[int, int, int]
    consumers: int
    pingpong: bool = False
    cluster: tuple[int, int] = (1, 1)
    parts: int = 1
    swapped: bool = False

    @property
    def sides(self) -> tuple[int, int]:
        """The tile's extents along m and n."""
        rows, columns, _ = self.tile
        return (columns, rows) if self.swapped else (rows, columns)

    @property
    def name(self) -> str:
        return " x ".join(map(str, self.sides))


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
    def oriented(self) -> Request:
        """The request with the rows of the instructions in the role m."""
        return self.request.exchanged if self.form.swapped else self.request

    @property
    def blocks(self) -> int:
        """Tiles, each once for each part of K."""
        m, n, _, *batches = self.oriented.shape
        rows, columns, _ = self.form.tile
        return ceil(m / rows) * ceil(n / columns) * prod(batches) * self.parts

    @cached_property
    def modeled(self) -> float:
        """Seconds by the cost model alone; infinite if a block does not fit."""
        return estimate(self.sizes, self.oriented.shape, self.request.gpu)

    @cached_property
    def seconds(self) -> float:
        """The estimate: the cost model's, corrected by what was learned from measurements, never
        above the GPU's peak rates."""
        if self.modeled == inf or not covers(self.sizes):
            return self.modeled
        corrected = self.modeled * correction(self.features, self.sizes.item[0])
        return max(corrected, least(self.sizes, self.oriented.shape, self.request.gpu))

    @property
    def features(self) -> tuple[float, ...]:
        """What the correction depends on."""
        request = self.oriented
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
        form, (m, n, k) = self.form, self.oriented.letters
        a, b, c = (self.request.access[role].tensor for role in "abc")
        tiles = f"{a} {b} {c}" if self.sizes.staged else f"{a} {b}"
        rows, columns, along_k = form.tile
        yield f"tile {m}={rows} {n}={columns} {k}={along_k}"
        yield f"cache_shared {tiles}"
        own = rows if form.pingpong else rows // form.consumers
        yield f"warp_tile {m}={own} {n}={columns}"
        if self.request.terms:
            yield f"decompose into={self.request.terms}"
        rows_of = f" rows={m}" if form.swapped else ""
        terms = self.request.terms
        promote = f" promote={PROMOTE[terms]}" if terms else ""
        promote = f" promote={along_k}" if self.request.scaled_terms else promote
        yield f"tensor_core via=wgmma{rows_of}{promote}"
        if self.request.width["c"] > 1 and self.oriented.along["c"] == "n":
            yield f"vectorize {c} width=2"
        yield f"swizzle {f'{a} {b}' if self.sizes.plain else tiles}"
        yield f"double_buffer {a} {b} stages={self.sizes.stages}"
        if self.sizes.slices > 1:
            yield f"double_buffer {c} stages={self.sizes.slices}"
        yield f"async_copy {tiles} via=tma"
        if self.blocks > self.request.gpu.sms:
            yield f"raster group={RASTER}"
        if self.sizes.persistent:
            yield "persistent"
        if self.sizes.producer:
            order = " order=pingpong" if form.pingpong else ""
            yield f"warp_specialize producers=1 consumers={form.consumers}{order}"
        if self.parts > 1:
            groups = groups_of(self.parts)
            yield f"split_k parts={self.parts}" + (f" groups={groups}" if groups > 1 else "")
        if form.cluster != (1, 1):
            sides = zip((m, n), form.cluster, strict=True)
            yield "cluster " + " ".join(f"{x}={count}" for x, count in sides if count > 1)
        if not self.request.terms:  # a pre-pass splits the operands before this kernel
            yield "overlap_launch"
