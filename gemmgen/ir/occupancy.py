"""Registers that a thread needs, and how many blocks a multiprocessor is asked to hold for them.

The estimate is made from a thread's arrays: for decisions of the compiler, for machines without
NVRTC or nvcc, and for searches that rank thousands of schedules.

Two blocks hide each other's waits at barriers.  Compilers often use a few registers too many for a
second one; if a thread's arrays fit twice, ``__launch_bounds__`` limits them.
"""

from __future__ import annotations

from gemmgen.ir.atoms import ATOMS
from gemmgen.ir.buffers import Buffer, Space
from gemmgen.ir.dtypes import BYTES, DType
from gemmgen.ir.edit import copies, has_fragments
from gemmgen.ir.nodes import Kernel
from gemmgen.ir.target import (
    MAX_REGISTERS,
    OVERHEAD,
    REGISTER_FILE,
    REGISTER_UNIT,
    RESIDENT_THREADS,
    WARPGROUP,
)

PRODUCER_REGISTERS, CONSUMER_REGISTERS = 24, 240
"""What a producer keeps, the fewest that ``setmaxnreg`` allows, and the most that a consumer gets.
"""
SETS_REGISTERS = "sm_90a"
"""The target that has ``setmaxnreg``."""
BESIDE_WGMMA = 26
"""Registers that ptxas wants besides accumulators.  One ``wgmma`` must fit in what a thread has at
the launch, whatever ``setmaxnreg`` gives it later, or ptxas does not compile it (C7602).  All that
a thread multiplies at a time must fit in what it has then, or ptxas serializes it with a warning
(C7511, C7512).  The same for all types and sizes (``tests/nvrtc/registers.csv``, ptxas 13.0)."""
REGISTER = 4
"""Bytes of one."""


def blocks_per_multiprocessor(kernel: Kernel) -> int:
    """The value of ``launch_bounds``; by default 2 if two blocks' threads, arrays and instructions
    fit, else 1, and 1 if a thread has one sum."""
    if kernel.bounds.blocks:
        return kernel.bounds.blocks
    threads = 2 * kernel.threads
    if (kernel.spread.registers == 1 and not has_fragments(kernel)) or threads > RESIDENT_THREADS:
        return 1
    if not can_multiply(kernel, 2):
        return 1
    return 2 if threads * estimated_registers(kernel) <= REGISTER_FILE else 1


def accumulators_of_instruction(kernel: Kernel) -> int:
    """Registers that one ``wgmma`` adds to; 0 if none of the kernel's instructions is one."""
    atom = ATOMS[kernel.spread.atom]
    if not atom.in_place:
        return 0
    columns = kernel.spread.axes[1]
    return atom.m * (columns.extent // columns.warps) // atom.lanes


def registers_of_instruction(kernel: Kernel) -> int:
    """Registers that a kernel must have at its launch for ptxas to compile its instructions."""
    accumulators = accumulators_of_instruction(kernel)
    return accumulators + BESIDE_WGMMA if accumulators else 0


def overhead_of(kernel: Kernel) -> int:
    """Registers that a thread needs in addition to its arrays."""
    return BESIDE_WGMMA if ATOMS[kernel.spread.atom].in_place else OVERHEAD


def can_multiply(kernel: Kernel, blocks: int) -> bool:
    """Whether ptxas has registers for the kernel's ``wgmma`` with this many resident blocks."""
    if not ATOMS[kernel.spread.atom].in_place:
        return True
    at_once = kernel.spread.registers + BESIDE_WGMMA
    has = registers_when_multiplying(kernel.consumers, kernel.producers.threads, blocks)
    one = registers_of_instruction(kernel)
    return one <= registers_at_launch(kernel.threads, blocks) and at_once <= has


def registers_at_launch(threads: int, blocks: int) -> int:
    """Registers of each of a block's ``threads`` before ``setmaxnreg``."""
    return min(MAX_REGISTERS, _in_units(REGISTER_FILE // (threads * max(1, blocks))))


def registers_when_multiplying(consumers: int, producers: int, blocks: int) -> int:
    """Registers of each of a block's ``consumers``, threads that multiply."""
    by_role = _of_consumers(consumers, producers, blocks)
    return by_role or registers_at_launch(consumers + producers, blocks)


def registers_are_scarce(kernel: Kernel) -> bool:
    """Whether ``__launch_bounds__`` leaves a thread so few registers over the estimate that
    compilers are likely to spill: fewer than ``OVERHEAD``."""
    allowed = allowed_registers(kernel.threads, blocks_per_multiprocessor(kernel))
    return estimated_registers(kernel) + OVERHEAD > allowed


def estimated_registers(kernel: Kernel) -> int:
    """A thread's accumulators, fragments and the elements staged between a load and a late store,
    plus ``OVERHEAD``: compilers need about that."""
    arrays = [b for b in kernel.buffers if b.space is Space.REGISTER and b.spread is not None]
    total = OVERHEAD
    total += sum(registers_of(array) for array in arrays)
    for copy in copies(kernel):
        tile = kernel.buffer(copy.dst)
        if tile.space is Space.SHARED and tile.stages > 1 and copy.mode == "registers":
            waiting = -(-elements_of(kernel, copy.dst) // kernel.copying_threads)
            total += _words(waiting, tile.dtype)
    return total


def registers_of(tile: Buffer) -> int:
    """32-bit registers that a thread's part of a tile takes."""
    assert tile.spread is not None
    return _words(tile.stages * tile.parts * tile.spread.registers, tile.dtype)


def allowed_registers(threads: int, blocks: int) -> int:
    """What ``__launch_bounds__(threads, blocks)`` leaves to a thread; more of them are spilled."""
    return min(MAX_REGISTERS, REGISTER_FILE // (threads * max(1, blocks)))


def registers_by_role(kernel: Kernel, target: str) -> tuple[int, int] | None:
    """Registers of a producer's thread and of a consumer's, by ``setmaxnreg``; None where there are
    no producers, or where consumers would gain nothing.

    The instruction takes whole warpgroups, and what a block has at its launch is all there is.
    """
    if target != SETS_REGISTERS:
        return None
    blocks = blocks_per_multiprocessor(kernel)
    most = _of_consumers(kernel.consumers, kernel.producers.threads, blocks)
    return (PRODUCER_REGISTERS, most) if most else None


def _of_consumers(consumers: int, producers: int, blocks: int) -> int:
    """Registers of a consumer's thread by ``setmaxnreg``; 0 where it would gain nothing."""
    if not producers or consumers % WARPGROUP:
        return 0
    threads = consumers + producers
    at_launch = registers_at_launch(threads, blocks)
    left = _in_units(at_launch) * threads - PRODUCER_REGISTERS * producers
    most = min(CONSUMER_REGISTERS, _in_units(left // consumers))
    return most if most > at_launch else 0


def registers_allowed(kernel: Kernel, target: str) -> int:
    """Registers that a thread with accumulators may have: if others of its block only copy, or it
    multiplies by ``wgmma``, those that the launch or ``setmaxnreg`` leaves it, else as many as
    there are (the others may be spilled)."""
    if not kernel.producers.warpgroups and not ATOMS[kernel.spread.atom].in_place:
        return MAX_REGISTERS
    found = registers_by_role(kernel, target)
    if found:
        return found[1]
    return registers_at_launch(kernel.threads, kernel.bounds.blocks)


def _in_units(registers: int) -> int:
    return registers // REGISTER_UNIT * REGISTER_UNIT


def elements_of(kernel: Kernel, name: str) -> int:
    """Elements of a tile in shared memory."""
    rows, columns = (kernel.buffer(name).extent(letter) for letter in kernel.buffer(name).letters)
    return rows * columns


def _words(elements: int, dtype: DType) -> int:
    return -(-elements * BYTES[dtype] // REGISTER)
