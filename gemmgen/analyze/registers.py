"""Registers of a thread, estimated from its arrays: for machines without a compiler, and for
searches that rank thousands of schedules."""

from __future__ import annotations

from gemmgen.ir.dtypes import BYTES, DType
from gemmgen.ir.edit import copies
from gemmgen.ir.nodes import Kernel, Space
from gemmgen.target import MAX_REGISTERS, OVERHEAD, REGISTER_FILE

REGISTER = 4
"""Bytes of one."""


def estimated_registers(kernel: Kernel) -> int:
    """A thread's sums, fragments and the elements that wait between a load and a late store, and
    ``OVERHEAD``: what the compiler needs is near it."""
    arrays = [b for b in kernel.buffers if b.space is Space.REGISTER and b.spread is not None]
    total = OVERHEAD
    for array in arrays:
        if array.spread is not None:
            total += _words(array.layout.stages * array.spread.registers, array.dtype)
    for copy in copies(kernel):
        tile = kernel.buffer(copy.dst)
        if tile.space is Space.SHARED and tile.layout.stages > 1 and copy.mode == "registers":
            waiting = -(-elements_of(kernel, copy.dst) // kernel.spread.threads)
            total += _words(waiting, tile.dtype)
    return total


def allowed_registers(threads: int, blocks: int) -> int:
    """What ``__launch_bounds__(threads, blocks)`` leaves to a thread; more of them are spilled."""
    return min(MAX_REGISTERS, REGISTER_FILE // (threads * max(1, blocks)))


def elements_of(kernel: Kernel, name: str) -> int:
    """Elements of a tile in shared memory."""
    rows, columns = (kernel.buffer(name).extent(letter) for letter in kernel.buffer(name).letters)
    return rows * columns


def _words(elements: int, dtype: DType) -> int:
    return -(-elements * BYTES[dtype] // REGISTER)
