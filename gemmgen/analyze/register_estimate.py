"""Estimate a thread's registers without a compiler; fitted to what NVRTC 13.0 reports.

A kernel that only has arrays needs what they hold and addresses besides: ``arrays + ADDRESSES``.
Compilers read fragments for several k ahead while registers are left, so that kernels with few
accumulators take more than their arrays: at least ``FREE + AHEAD * arrays``. Blocks that share a
tile read the other parts' accumulators side by side: as many again. ``__launch_bounds__`` caps it
all, and a kernel with ``setmaxnreg`` gets as many as that allows.

Of the examples (sm_90) no estimate is off by more than ``OFF``, and half of them by less than
``TYPICAL``: ``tests/analyze/test_register_estimate.py``.  ``ir/occupancy.py`` has another estimate,
of the fewest registers that do, which decides on the launch bounds of emitted kernels.
"""

from __future__ import annotations

from gemmgen.ir.edit import has_fragments
from gemmgen.ir.nodes import Kernel
from gemmgen.ir.occupancy import (
    allowed_registers,
    estimated_registers,
    registers_at_launch,
    registers_by_role,
)
from gemmgen.ir.target import MAX_REGISTERS, OVERHEAD, REGISTER_UNIT

SINGLE, ADDRESSES = 30, 32
"""Registers in addition to the arrays: with one accumulator per thread, and with several."""
LANES = 24
"""The same if the lanes of a warp share accumulators."""
FREE, AHEAD = 74, 0.3
BATCHES = 8
"""For the strides of matrices that are numbered."""
OFF, TYPICAL = 0.25, 0.05


def compiled_registers(kernel: Kernel, target: str, blocks: int, batches: int) -> int:
    """What a compiler is expected to report; ``blocks``: of ``__launch_bounds__``."""
    if registers_by_role(kernel, target) is not None:
        return registers_at_launch(kernel.threads, blocks)
    spread = kernel.spread
    arrays = estimated_registers(kernel) - OVERHEAD
    if spread.holding == "lanes":
        wanted = float(arrays + LANES)
    elif spread.registers == 1 and not has_fragments(kernel):
        wanted = float(arrays + SINGLE)
    else:
        wanted = max(arrays + ADDRESSES, FREE + AHEAD * arrays)
        wanted += spread.registers if kernel.work.parts > 1 else 0
    wanted += BATCHES if batches else 0
    allowed = allowed_registers(kernel.threads, blocks)
    if allowed < MAX_REGISTERS:
        allowed -= allowed % REGISTER_UNIT
    return min(round(wanted), allowed)
