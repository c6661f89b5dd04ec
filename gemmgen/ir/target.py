"""The architectures of ``target`` (sm_90) and their limits, which decide whether a kernel is legal.

How fast one product is (an H200: its clock and bandwidth), for estimates, is in
``gpu/gpus.py``.

Shared memory, threads and blocks are from the CUDA C++ Programming Guide's table of technical
specifications per compute capability.
"""

from __future__ import annotations

from collections.abc import Iterable

from gemmgen.base.record import record
from gemmgen.ir.dtypes import DTYPES, OLDEST, DType

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
"""Threads of four warps, whose registers ``setmaxnreg`` shares out again."""

MAX_TILE = 4096
"""Elements of a tile along one letter: a limit of the language, not of a GPU."""


SINCE = {
    **{name: traits.since for name, traits in DTYPES.items() if traits.since > OLDEST},
    "cp_async": 80,
    "tma": 90,
    "m16n8k16": 80,
    "m16n8k32": 80,
    "m16n8k8_tf32": 80,
    "m16n8k16_f32": 80,
    "m16n8k16_f64": 90,
    "m16n8k8_f64": 90,
    "m16n8k4_f64": 90,
    "m8n8k4_f64": 80,
}
"""The first architecture that has a type, a way of copying or an atom, by its name in the IR; every
one has those that are not listed."""

MULTICASTS = "sm_90a"
"""The target whose TMA writes a tile into several blocks of a cluster as fast as into one:
elsewhere such copies compile, and may be much slower (PTX ISA, cp.async.bulk.tensor)."""


ONLY: dict[str, str] = dict.fromkeys(
    ("m64nNk16", "m64nNk16_f32", "m64nNk32", "m64nNk32_i8", "m64nNk8"), "sm_90a"
)
"""The one architecture that has an atom, by the atom's name."""

UNTIL = {"m16n8k16_f64": 90, "m16n8k8_f64": 90, "m16n8k4_f64": 90}
"""The last architecture whose machine code has an atom: compilers for later ones take it apart."""


def offers(target: str, feature: str) -> bool:
    """Whether ``target`` has a type, a way of copying or an atom."""
    number, last = _number(target), UNTIL.get(feature)
    if last is not None and number > last:
        return False
    return ONLY.get(feature, target) == target and number >= SINCE.get(feature, 0)


def has(target: str, since: int) -> bool:
    """Whether ``target`` (``sm_90a``) has the features of architecture ``since``."""
    return _number(target) >= since


def architecture(target: str) -> str:
    """``90a`` of ``sm_90a``."""
    return target.removeprefix("sm_")


def _number(target: str) -> int:
    return int(architecture(target).rstrip("a"))


def fill_warps(threads: int) -> bool:
    """Whether a block of this many threads has whole warps, and no more than a block may have."""
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


def default_target(dtypes: Iterable[DType]) -> str:
    """The target of a schedule that states none: the first from ``DEFAULT_TARGET`` on that has the
    element types."""
    since = max((SINCE.get(dtype, 0) for dtype in dtypes), default=0)
    return DEFAULT_TARGET if has(DEFAULT_TARGET, since) else f"sm_{since}"


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


def runnable(target: str, arch: str) -> str:
    """``target``, or the newest one that runs on GPUs of ``arch`` if they are older."""
    return target if has(arch, _number(target)) else newest_target(arch)


def newest_target(arch: str) -> str:
    """The newest target whose code runs on GPUs of ``arch``: PTX of an architecture runs on all
    later ones (sm_90 on sm_100), but for targets whose names end with ``a``.  sm_75 for an older
    one, which runs none."""
    plain = [name for name in TARGETS if name[-1].isdigit()]
    older = [name for name in plain if _number(name) <= _number(arch)]
    return max(older or plain[:1], key=_number)
