"""raster: the order of the blocks over the tiles of C.

Concurrent blocks share the L2 cache.  ``group=8`` orders the tiles in groups of 8 block rows,
column by column within a group, so that concurrent blocks read fewer different rows of A and
columns of B than row by row.  With ``order=hilbert`` a group is split into squares, here of 8 x 8
tiles, one after another, and a Hilbert curve leads through each square, so that concurrent tiles
are close together for any number of them; the rest of a group is ordered column by column.

    work [m=16, n=16]
==> raster group=8
    work [m=16, n=16] raster=8   # raster group=8
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import ClassVar, cast, get_args

from gemmgen.base.errors import Refusal
from gemmgen.base.record import record
from gemmgen.ir.edit import changed_by, edit_main
from gemmgen.ir.nodes import Kernel, Program, RasterOrder
from gemmgen.passes.base import Stated
from gemmgen.schedule.model import Gemm
from gemmgen.schedule.spec import ArgumentSpec, DirectiveSpec, Elsewhere

MOST = 1024
"""The most block rows of a group."""


@record
class Raster:
    SPEC: ClassVar = DirectiveSpec(
        "raster",
        example="raster group=8",
        arguments=(
            ArgumentSpec(
                "group",
                maximum=MOST,
                required=True,
                identity=1,
                elsewhere="group_size_m panel_size size",
                fuzz=((2,), (3, 4, 5, 8, 64)),
            ),
            ArgumentSpec(
                "order",
                "word",
                choices=get_args(RasterOrder),
                default="columns",
                identity="columns",
                elsewhere="raster_order curve",
            ),
        ),
        elsewhere=Elsewhere(
            "TileLang use_swizzle, Triton GROUP_SIZE_M, CUTLASS raster_order",
            "use_swizzle group_size_m l2_groupings raster_order threadblock_swizzle group_m",
        ),
    )
    AFTER: ClassVar[tuple[str, ...]] = ("tile",)

    group: int
    order: RasterOrder
    stated: Stated = field(compare=False)

    @staticmethod
    def read(stated: Stated, gemm: Gemm) -> Raster:
        order = cast(RasterOrder, stated.word("order") or "columns")
        return Raster(stated.integer("group") or 1, order, stated)

    def apply(self, program: Program) -> Program:
        if self.order == "hilbert":
            self._check_squares()
        change = {"raster": self.group, "order": self.order}

        def order(kernel: Kernel) -> Kernel:
            return replace(kernel, work=changed_by(self.stated.origin, kernel.work, **change))

        return edit_main(program, order)

    def _check_squares(self) -> None:
        """A Hilbert curve halves its square until a tile is left."""
        whole, odd = self.group & -self.group, self.group // (self.group & -self.group)
        if odd == 1 and self.group > 1:
            return
        power = 1 << self.group.bit_length() - 1
        near = sorted({max(power, 2), min(2 * power, MOST)})
        raise Refusal(
            f"a Hilbert curve halves its square, and group={self.group} "
            + ("is a single tile" if odd == 1 else f"ends in {odd} x {odd} squares"),
            at=self.stated.span_of("group"),
            notes=(f"{self.group} = {whole} x {odd}; a side is a power of two, from 2 on",),
            hint=f"group={' or '.join(map(str, near))}, or order=columns",
        )
