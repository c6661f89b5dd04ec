"""The first architecture that can run a kernel, from all that its text uses."""

from __future__ import annotations

from gemmgen.ir.dtypes import OLDEST
from gemmgen.ir.ptx_targets import first_with
from gemmgen.ir.target import SINCE
from gemmgen.pipeline import Emitted
from gemmgen.sim.ptx import instructions_of

ATTRIBUTES = {"__cluster_dims__": 90}
"""What a text uses besides instructions, and the first architecture with it."""


def first_architecture(emitted: Emitted) -> int:
    """The first one (80 for sm_80) with every type, instruction and attribute of the kernel."""
    problem = emitted.program.problem
    types = {problem.a.dtype, problem.b.dtype, problem.c.dtype, *dict(problem.others).values()}
    return max(
        OLDEST,
        *(SINCE.get(dtype, 0) for dtype in types),
        *map(first_with, instructions_of(emitted.text)),
        *(since for name, since in ATTRIBUTES.items() if name in emitted.text),
    )
