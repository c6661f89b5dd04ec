"""The architectures of ``target`` (sm_90) and their limits, which decide whether a kernel is legal.

How fast one product is (an H200: its clock and bandwidth), for estimates, is in
``analyze/gpus.py``.

Shared memory, threads and blocks are from the CUDA C++ Programming Guide's table of technical
specifications per compute capability.
"""

from __future__ import annotations

from gemmgen.base.record import record

STATIC_SHARED = 48 * 1024
"""Bytes of shared memory a kernel may declare statically, on every architecture."""
MAX_THREADS = 1024
"""Threads per block."""
MAX_REGISTERS = 255
"""32-bit registers per thread."""
REGISTER_FILE = 65536
"""32-bit registers per multiprocessor."""
REGISTER_UNIT = 8
"""Registers are allocated to threads in eights (256 to a warp)."""
RESIDENT_THREADS = 1024
"""Threads that a multiprocessor holds on every architecture: sm_75's."""
OVERHEAD = 24
"""The fewest registers that a thread needs in addition to its arrays: coordinates, bounds,
pointers."""
WARP = 32
WARPGROUP = 128
"""Threads of four warps, whose registers ``setmaxnreg`` shares out anew."""

MAX_TILE = 4096
"""Elements of a tile along one letter: a limit of the language, not of a GPU."""


SINCE = {"bf16": 80, "cp_async": 80, "tma": 90}
"""The first architecture that has a type, a way of copying or an atom, by its name in the IR; every
one has those that are not listed."""


def has(target: str, since: int) -> bool:
    """Whether ``target`` (``sm_90a``) has the features of architecture ``since``."""
    return int(target.removeprefix("sm_").rstrip("a")) >= since


def fill_warps(threads: int) -> bool:
    """Whether a block of so many threads has whole warps, and no more than a block may have."""
    return 0 < threads <= MAX_THREADS and threads % WARP == 0


def nvcc_flag(target: str) -> str:
    """nvcc's option for ``target`` alone: with ``-arch=sm_90a`` it compiles for compute_90, too,
    which has not all of the instructions of sm_90a."""
    return f"-gencode=arch={target.replace('sm', 'compute')},code={target}"


@record
class Target:
    """One architecture.

    ``shared``: the most shared memory a block may ask for, in bytes; ``threads`` and ``blocks``:
    the most that a multiprocessor holds at once; ``reserved``: bytes that each block takes of its
    shared memory for the system.
    """

    name: str
    shared: int
    threads: int
    blocks: int
    reserved: int = 1024

    @property
    def all_shared(self) -> int:
        """Shared memory of a multiprocessor, which one block may have as a whole."""
        return self.shared + self.reserved


DEFAULT_TARGET = "sm_80"

TARGETS = {
    target.name: target
    for target in (
        Target("sm_75", 64 * 1024, 1024, 16, reserved=0),
        Target("sm_80", 163 * 1024, 2048, 32),
        Target("sm_86", 99 * 1024, 1536, 16),
        Target("sm_89", 99 * 1024, 1536, 24),
        Target("sm_90", 227 * 1024, 2048, 32),
        Target("sm_90a", 227 * 1024, 2048, 32),
        Target("sm_120", 99 * 1024, 1536, 24),
    )
}
