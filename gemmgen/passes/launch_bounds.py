"""launch_bounds: minimum resident blocks per multiprocessor.

It is the second argument of ``__launch_bounds__``; the compiler caps registers to reach it, and may
spill.  One block's barriers and loads overlap another's arithmetic; on the other hand a thread with
more registers reads each operand less often.  Without the directive it is 2 blocks if the arrays of
a thread fit twice, else 1.  ``blocks=1`` leaves the registers to the compiler, ``blocks=0`` the
choice to gemmgen, as without the directive.

    work [m=16, n=16]
==> launch_bounds blocks=2
    work [m=16, n=16]
    bounds blocks=2   # launch_bounds blocks=2
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import ClassVar

from gemmgen.base.record import record
from gemmgen.ir.edit import edit_main
from gemmgen.ir.nodes import Bounds, Kernel, Program
from gemmgen.passes.base import Stated
from gemmgen.schedule.model import Gemm
from gemmgen.schedule.spec import ArgumentSpec, DirectiveSpec, Elsewhere


@record
class LaunchBounds:
    """Whether this many blocks fit is checked with the other limits, when threads and bytes are
    known."""

    SPEC: ClassVar = DirectiveSpec(
        "launch_bounds",
        example="launch_bounds blocks=2",
        arguments=(
            ArgumentSpec(
                "blocks", minimum=0, maximum=32, required=True, identity=0, fuzz=((1,), (2, 3))
            ),
        ),
        elsewhere=Elsewhere(
            "CUDA minBlocksPerMultiprocessor, Numba max_registers",
            "min_blocks minblocks min_blocks_per_multiprocessor maxrregcount "
            "max_registers occupancy",
        ),
    )
    AFTER: ClassVar[tuple[str, ...]] = ("tile", "register_block")

    blocks: int
    stated: Stated = field(compare=False)

    @staticmethod
    def read(stated: Stated, gemm: Gemm) -> LaunchBounds:
        return LaunchBounds(stated.integer("blocks") or 0, stated)

    def apply(self, program: Program) -> Program:
        def bound(kernel: Kernel) -> Kernel:
            return replace(kernel, bounds=Bounds(self.blocks, (self.stated.origin,)))

        return edit_main(program, bound)
