"""PTX instructions: a row says all that compilation knows of one.

A new instruction is a row here, its device function ``emit/intrinsics/NAME.cuh``, and its models:
a function of this name in the ``INSTRUCTIONS`` of the interpreter's file for the mechanism, and the
C++ of its PTX mnemonic in ``sim/ptx.h``.  Printing, IR text, traversal and analyses read the row.
"""

from __future__ import annotations

from typing import Literal

from gemmgen.base.record import record
from gemmgen.ir.dtypes import OLDEST

Kind = Literal[
    "value",
    "constant",
    "elements",
    "barrier",
    "array",
    "map",
    "global",
    "shared",
    "pointer",
    "tile",
]
"""What an operand is, and so how the device function is called with it.

    ``value``     an expression
    ``constant``  a template argument
    ``elements``  a number of elements of ``dtype``, in bytes
    ``barrier``   an mbarrier in shared memory
    ``array``     a register array by its name
    ``map``       a parameter of the kernel that is a tensor map
    ``global``, ``shared``   an element of that memory, by its address
    ``pointer``   an element of shared memory or registers, by a pointer to it
    ``tile``      an element of a tile in shared memory, from which on it lies without gaps
"""

Operands = tuple[tuple[str, Kind], ...]
"""The operands of an instruction by name, in the order of the device function's parameters."""

Effect = Literal[
    "barrier", "fence", "arrive", "commit", "wait", "resource", "copy", "multiply", "read", "write"
]
"""What it does beyond computing its result.

    ``barrier``   threads wait for each other at one place
    ``fence``     orders accesses to memory or registers: of one thread alone it changes no value
    ``arrive``    sets up a phase of an mbarrier, or arrives there
    ``commit``    ends a group of asynchronous operations
    ``wait``      waits for asynchronous operations, or asks whether they have ended
    ``copy``      begins an asynchronous copy
    ``multiply``  computes a product, or begins it if it is asynchronous
    ``read``      reads memory
    ``write``     changes memory
    ``resource``  registers or the launch of another kernel: it changes no value
"""

NO_VALUE: tuple[Effect, ...] = ("fence", "resource")
"""Effects that a machine may leave out that runs one statement of all threads after another."""


@record
class InstructionRow:
    """``name`` is that of the file in ``emit/intrinsics``; without one ``builtin`` is CUDA's own
    function.  ``ptx`` is what the mnemonic begins with: the PTX ISA describes it under that, and
    says since which architecture it exists (80 for sm_80); None if its types decide that
    (``ir/ptx_targets.py``).

    An instruction has all ``modifiers``, and may have ``options``; an operand whose name begins
    with ``*`` is any number of them.  ``result`` is the type of the variable that the result
    defines; ``spins``: it is repeated until the result is true.
    """

    name: str
    ptx: str
    since: int | None
    effect: Effect
    operands: Operands = ()
    modifiers: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    result: str = ""
    spins: bool = False
    builtin: str = ""

    @property
    def touches_global(self) -> bool:
        """Whether it accesses global memory."""
        return any(kind in ("global", "map") for _, kind in self.operands)

    @property
    def repeated(self) -> int | None:
        """The position of the operand that is any number of them."""
        names = [name for name, _ in self.operands]
        return next((at for at, name in enumerate(names) if name.startswith("*")), None)


_BARRIER: Operands = (("barrier", "barrier"),)
_PHASE: Operands = (*_BARRIER, ("parity", "value"))
_ARRIVALS: Operands = (*_BARRIER, ("arrivals", "value"))
_BYTES: Operands = (*_BARRIER, ("bytes", "value"))
_PENDING: Operands = (("pending", "constant"),)
_COUNT: Operands = (("count", "constant"),)
_COPY: Operands = (("target", "shared"), ("source", "global"), ("valid", "elements"))
_LOAD: Operands = (("target", "tile"), ("map", "map"), *_BARRIER, ("*at", "value"))
_MULTICAST: Operands = (*_LOAD, ("blocks", "value"))
_STORE: Operands = (("map", "map"), ("source", "tile"), ("*at", "value"))
_SUM: Operands = (("target", "global"), ("value", "value"))
_ROWS_TO_FRAGMENT: Operands = (("target", "pointer"), ("row", "pointer"))
_FRAGMENT_TO_ROWS: Operands = (("row", "pointer"), ("source", "pointer"))
_MMA: Operands = (("*accumulators", "pointer"), ("a", "pointer"), ("b", "pointer"))
_WGMMA: Operands = (
    ("upper", "pointer"),
    ("lower", "pointer"),
    ("a", "value"),
    ("b", "value"),
    ("accumulate", "value"),
)
_TYPES = ("a", "b", "acc")
_ACCUMULATORS: Operands = (("accumulators", "array"),)

_ROWS = (
    # What any thread of the block wrote before it, all see after it.
    InstructionRow("sync_block", "bar.sync", OLDEST, "barrier", builtin="__syncthreads"),
    # The same for the lanes of a warp.
    InstructionRow("sync_warp", "bar.warp.sync", OLDEST, "barrier", builtin="__syncwarp"),
    # ``width`` elements from global to shared memory, some time before the wait for their group:
    # ``valid`` of them, then zeros.  ``evict`` is a hint for the L2 cache.
    InstructionRow("copy_async", "cp.async", 80, "copy", _COPY, ("dtype", "width"), ("evict",)),
    # Ends a group of asynchronous copies: the thread's since the last one.
    InstructionRow("commit_group", "cp.async.commit_group", 80, "commit"),
    # Until at most ``pending`` of the thread's groups are in flight.
    InstructionRow("wait_group", "cp.async.wait_group", 80, "wait", _PENDING),
    # The first phase of the barrier begins; each needs ``arrivals``.
    InstructionRow("init_barrier", "mbarrier.init", 80, "arrive", _ARRIVALS),
    # The barriers that the thread has initialized are visible to TMA; other threads need a barrier
    # after it.
    InstructionRow("fence_barrier_init", "fence.mbarrier_init", 90, "arrive"),
    # One arrival, and the phase expects this many more bytes.
    InstructionRow("expect_bytes", "mbarrier.arrive.expect_tx", 90, "arrive", _BYTES),
    # Until the phase with this ``parity`` (0 or 1) has ended: what was written by copies that it
    # counts is then visible to the thread.
    InstructionRow("try_wait", "mbarrier.try_wait.parity", 90, "wait", _PHASE, spins=True),
    # Whether that phase has ended by now; no thread waits.
    InstructionRow("test_wait", "mbarrier.test_wait.parity", 80, "wait", _PHASE, result="bool"),
    # One arrival of each thread that executes it: what it did before, threads see that wait for the
    # phase.
    InstructionRow("arrive", "mbarrier.arrive", 80, "arrive", _BARRIER),
    # The same at the barrier at this place in the shared memory of the cluster's block ``rank``.
    InstructionRow(
        "arrive_at", "mbarrier.arrive.shared::cluster", 90, "arrive", (*_BARRIER, ("rank", "value"))
    ),
    # Until ``threads`` threads of the block, in whole warps, have arrived at one of its 16 named
    # barriers; ``sync_block`` is number 0 with all threads.
    InstructionRow(
        "sync_warps", "bar.sync", OLDEST, "barrier", (("number", "value"), ("threads", "value"))
    ),
    # The same, and whether ``value`` is true in any of them.
    InstructionRow(
        "sync_warps_or",
        "bar.red.or.pred",
        OLDEST,
        "barrier",
        (("number", "value"), ("threads", "value"), ("value", "value")),
        result="bool",
    ),
    # Until all threads of all blocks of the cluster have arrived; what they wrote before, all see
    # after it.
    InstructionRow("sync_cluster", "barrier.cluster", 90, "barrier"),
    # From here on each thread of the warpgroup has ``count`` registers: it releases the others.
    InstructionRow("fewer_registers", "setmaxnreg.dec", 90, "resource", _COUNT),
    # The same, once other warpgroups have released as many as it lacks.
    InstructionRow("more_registers", "setmaxnreg.inc", 90, "resource", _COUNT),
    # Until the preceding kernel has ended, and its writes are visible.
    InstructionRow("wait_grid", "griddepcontrol.wait", 90, "resource"),
    # The dependent kernel may begin as soon as every block has executed it, or ended.
    InstructionRow("launch_dependents", "griddepcontrol.launch_dependents", 90, "resource"),
    # A box of the map's tensor to shared memory from ``target`` on, row by row without gaps, some
    # time before the phase of ``barrier`` ends that counts its bytes.  ``at`` is the box's first
    # element, innermost index first; elements outside the tensor are zeros.
    InstructionRow("load_box", "cp.async.bulk.tensor", 90, "copy", _LOAD, options=("evict",)),
    # The same to this place in each block of the cluster whose bit is set in ``blocks``; the
    # barrier at this place there counts it.
    InstructionRow(
        "multicast_box",
        "cp.async.bulk.tensor",
        90,
        "copy",
        _MULTICAST,
        options=("evict",),
    ),
    # A box of shared memory from ``source`` on to the map's tensor, some time before the thread's
    # wait for its group; elements outside the tensor are left out.
    InstructionRow("store_box", "cp.async.bulk.tensor", 90, "copy", _STORE),
    # What the thread has written to shared memory, TMA sees, and what the thread has read there,
    # TMA may overwrite, if a thread issues it that waits with this one at a barrier after the
    # fence.
    InstructionRow("fence_async", "fence.proxy.async", 90, "fence"),
    # Ends a group of stores of boxes: the thread's since the last one.
    InstructionRow("commit_boxes", "cp.async.bulk.commit_group", 90, "commit"),
    # Until at most ``pending`` of the thread's groups have shared memory to read yet.  Others know
    # of that only after a barrier.
    InstructionRow("await_boxes", "cp.async.bulk.wait_group.read", 90, "wait", _PENDING),
    # ``target += value``, undivided, of elements of ``dtype``.
    InstructionRow("add", "red", OLDEST, "write", _SUM, ("dtype",)),
    # A warp reads ``count`` matrices of 8 rows of 16 bytes from shared memory, each to a register
    # of each lane, from ``target`` on.  Lane ``8 * i + r`` names ``row`` r of matrix i, at a
    # multiple of 16 bytes.  Lane ``l`` gets the ``l % 4``-th 4 bytes of row ``l / 4``; if
    # ``transposed``, elements of 16 bits, those that are there with rows and columns exchanged.
    InstructionRow(
        "ldmatrix",
        "ldmatrix",
        OLDEST,
        "read",
        _ROWS_TO_FRAGMENT,
        ("count", "dtype"),
        ("transposed",),
    ),
    # ``accumulators += a * b`` of a warp's fragments, by ``atom``: each accumulator is the first of
    # its row; types of A, B and the accumulators.
    InstructionRow("mma", "mma.sync", None, "multiply", _MMA, ("atom", *_TYPES)),
    # What threads did to their registers, the multiplications after it find: before the first one,
    # and wherever a thread has read or written accumulators since.
    InstructionRow("wgmma_fence", "wgmma.fence", 90, "fence"),
    # Ends a group of multiplications: the warpgroup's since the last one.
    InstructionRow("wgmma_commit", "wgmma.commit_group", 90, "commit"),
    # Until at most ``pending`` groups are in flight: the others have read their operands.  No
    # accumulator may be read yet, as compilers may move reads of registers before it.
    InstructionRow("wgmma_wait", "wgmma.wait_group", 90, "wait", _PENDING),
    # Until no group is in flight; ``accumulators`` may be read after it.
    InstructionRow("wgmma_end", "wgmma.wait_group", 90, "wait", _ACCUMULATORS),
    InstructionRow("wgmma_end_i32", "wgmma.wait_group", 90, "wait", _ACCUMULATORS),
    # Begins ``a * b`` of a warpgroup, to which the old accumulators are added if ``accumulate`` is
    # not zero, by ``atom`` for ``n`` columns.  Until a wait covers its group it reads its operands
    # and owns its accumulators.  ``a`` and ``b`` are descriptors plus units of 16 bytes.  ``upper``
    # is the first of a thread's accumulators in the first of the two rows that it has in each piece
    # of the atom, ``lower`` in the other one, eight rows below; others follow in their rows.
    # ``a_mn_major``, ``b_mn_major``: an operand lies along m or n (PTX: tnspA, tnspB).
    InstructionRow(
        "wgmma_multiply",
        "wgmma.mma_async",
        90,
        "multiply",
        _WGMMA,
        ("atom", "n", *_TYPES),
        ("a_mn_major", "b_mn_major"),
    ),
    # The opposite of ``ldmatrix``, of elements of 16 bits: of matrix i a lane has the elements
    # ``2 * i`` and ``2 * i + 1`` from ``source`` on.
    InstructionRow(
        "stmatrix", "stmatrix", 90, "write", _FRAGMENT_TO_ROWS, ("count", "dtype"), ("transposed",)
    ),
)

INSTRUCTIONS: dict[str, InstructionRow] = {row.name: row for row in _ROWS}
"""The rows by name, in the order in which a text has their device functions."""
