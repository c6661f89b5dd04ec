"""raster: the order of the blocks over the tiles of C.

Concurrent blocks share the L2 cache.  ``group=8`` orders the tiles in groups of 8 block rows,
column by column within a group, so that concurrent blocks read fewer different rows of A and
columns of B than row by row.

    work [m=16, n=16]
==> raster group=8
    work [m=16, n=16] raster=8   # raster group=8
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import ClassVar

from gemmgen.base.record import record
from gemmgen.ir.edit import changed_by, edit_main
from gemmgen.ir.nodes import Kernel, Program
from gemmgen.passes.base import Stated
from gemmgen.schedule.model import Schedule
from gemmgen.schedule.spec import ArgumentSpec, DirectiveSpec, Elsewhere


@record
class Raster:
    SPEC: ClassVar = DirectiveSpec(
        "raster",
        example="raster group=8",
        arguments=(
            ArgumentSpec(
                "group",
                maximum=1024,
                required=True,
                identity=1,
                elsewhere="group_size_m panel_size size",
                fuzz=((2,), (3, 4, 5, 8, 64)),
            ),
        ),
        elsewhere=Elsewhere(
            "TileLang use_swizzle, Triton GROUP_SIZE_M, CUTLASS raster_order",
            "use_swizzle group_size_m l2_groupings raster_order threadblock_swizzle group_m",
        ),
    )
    AFTER: ClassVar[tuple[str, ...]] = ("tile",)

    group: int
    stated: Stated = field(compare=False)

    @staticmethod
    def read(stated: Stated, schedule: Schedule) -> Raster:
        return Raster(stated.integer("group") or 1, stated)

    def apply(self, program: Program) -> Program:
        def order(kernel: Kernel) -> Kernel:
            work = changed_by(self.stated.origin, kernel.work, raster=self.group)
            return replace(kernel, work=work)

        return edit_main(program, order)
