"""How many blocks a multiprocessor is asked to hold at once.

Two blocks fill each other's waits at barriers.  Compilers often use a few registers more than would
leave room for the second one; where a thread's arrays fit twice, ``__launch_bounds__`` says so.
"""

from __future__ import annotations

from math import prod

from gemmgen.ir.dtypes import BYTES, DType
from gemmgen.ir.nodes import Space
from gemmgen.lower.context import Context
from gemmgen.lower.copies import staging_array
from gemmgen.target import OVERHEAD, REGISTER_FILE, RESIDENT_THREADS


def blocks_per_multiprocessor(context: Context) -> int:
    """What ``launch_bounds`` says; else 2 where two blocks' threads fit, and their arrays in the
    registers, and 1 where not."""
    if context.kernel.bounds.blocks:
        return context.kernel.bounds.blocks
    if context.scalar_sums or 2 * context.kernel.spread.threads > RESIDENT_THREADS:
        return 1
    needed = array_registers(context) + OVERHEAD
    return 2 if 2 * context.kernel.spread.threads * needed <= REGISTER_FILE else 1


def array_registers(context: Context) -> int:
    """Registers that a thread's sums, fragments and staged pieces take."""
    total = 0
    for buffer in context.kernel.buffers:
        if buffer.space is Space.REGISTER and buffer.spread is not None:
            total += _words(buffer.layout.stages * buffer.spread.registers, buffer.dtype)
    for copy in context.expanded.staged:
        array = staging_array(context, copy)
        total += _words(prod(array.sizes), array.dtype)
    return total


def _words(elements: int, dtype: DType) -> int:
    """32-bit registers that so many elements take."""
    return -(-elements * BYTES[dtype] // 4)
