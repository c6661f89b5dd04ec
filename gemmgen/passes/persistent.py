"""persistent: as many blocks as the GPU holds at once, each of which walks over tiles.

Without it a block computes one tile and ends, and the GPU starts another in its place.  A
persistent kernel is launched with ``min(tiles, multiprocessors * blocks)`` blocks, where the
multiprocessors are those of the GPU at hand and ``blocks`` are what ``launch_bounds`` says (without
it 2 if two fit, else 1).  Block b takes the tiles b, b + blocks, b + 2 * blocks ... in the order of
``raster``: what depends on the block's threads alone is computed once, not for each tile.

    work [m=16, n=16]
==> persistent
    work [m=16, n=16] persistent   # persistent
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import ClassVar

from gemmgen.base.errors import Refusal
from gemmgen.base.record import record
from gemmgen.ir.edit import changed_by, copies, edit_main
from gemmgen.ir.nodes import Kernel, Program
from gemmgen.passes.base import Stated
from gemmgen.schedule.model import Schedule
from gemmgen.schedule.spec import DirectiveSpec, Elsewhere


@record
class Persistent:
    SPEC: ClassVar = DirectiveSpec(
        "persistent",
        example="persistent",
        elsewhere=Elsewhere(
            "CUTLASS PersistentScheduler, Triton persistent matmul, TileLang T.Persistent",
            "persistent_kernel persistentscheduler tile_scheduler static_persistent",
        ),
    )
    AFTER: ClassVar[tuple[str, ...]] = ("tile", "split_k")

    stated: Stated = field(compare=False)

    @staticmethod
    def read(stated: Stated, schedule: Schedule) -> Persistent:
        return Persistent(stated)

    def apply(self, program: Program) -> Program:
        self._check(program.main)

        def walk(kernel: Kernel) -> Kernel:
            work = changed_by(self.stated.origin, kernel.work, persistent=True)
            return replace(kernel, work=work)

        return edit_main(program, walk)

    def _check(self, kernel: Kernel) -> None:
        """Refuses blocks that share a tile, and what is made ready for one tile alone."""
        parts, boxes = kernel.work.parts, [c for c in copies(kernel) if c.mode == "tma"]
        if parts > 1:
            raise Refusal(
                f"a persistent block computes whole tiles, and split_k gives a tile {parts} blocks",
                at=self.stated.span,
                notes=(
                    f"{parts - 1} of the {parts} leave the kernel when they have handed over "
                    "their sums, before their next tile",
                ),
                hint="split_k parts=1, or remove the line",
            )
        if boxes:
            stages, names = kernel.buffer(boxes[0].dst).stages, " ".join(c.src for c in boxes)
            raise Refusal(
                f"a persistent block would wait for copies of {boxes[0].src} by the copy engine "
                "in its second tile as in its first",
                at=self.stated.span,
                notes=(
                    f"the {stages} barriers of the stages count phases from the block's beginning",
                ),
                hint=f"async_copy {names} via=cp_async, or remove the line",
            )
