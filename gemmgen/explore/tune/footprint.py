"""The sizes of a program's blocks for the cost model, from the declared program."""

from __future__ import annotations

from math import gcd, prod

from gemmgen.explore.cost import SECTOR, TENSOR, BlockSizes, Kind
from gemmgen.ir import clusters
from gemmgen.ir.buffers import Role, Space
from gemmgen.ir.dtypes import BYTES
from gemmgen.ir.edit import contraction, copies, copy_outward, pipeline_of, tile_of
from gemmgen.ir.interface import Interface
from gemmgen.ir.nodes import Copy, Kernel, Map, Program
from gemmgen.ir.occupancy import (
    allowed_registers,
    blocks_per_multiprocessor,
    elements_of,
    estimated_registers,
    registers_by_role,
)
from gemmgen.ir.target import WARP

BANK = 4
"""Bytes of a bank of shared memory, and of a register."""
BANKS = 0.03
"""The share of multiply-adds with register bank conflicts if none reuse operands."""
LINE = 16
"""Elements that an instruction of tensor cores reads together."""
SHARED = 15.0
"""Clocks of each k that a warp waits for fragments which are not prefetched."""
SPILL, SQUEEZE, MEMORIES, MISSING = 2.0, 0.05, 15.0, 0.5
"""The slowdown of a kernel that needs twice the registers it may have; the share that compilers
save; the slowdown if this many are missing (``MISSING``) that arrays go to local memory."""
SCATTERED = 1.1
"""Bytes that blocks read in the order of the grid, relative to those in groups of tiles."""


def block_sizes(program: Program, interface: Interface) -> BlockSizes:
    """From ``program`` after all passes, and ``interface`` after lowering."""
    kernel, problem = program.main, program.problem
    spread, work, pipeline = kernel.spread, kernel.work, pipeline_of(kernel)
    m, n = (work.size(letter) for letter in (problem.m, problem.n))
    step = pipeline.step if pipeline else 1
    a, b = (
        _Operand(program, tensor.name, letter, step // spread.lanes_per_sum)
        for tensor, letter in ((problem.a, problem.m), (problem.b, problem.n))
    )
    kind: Kind = "block" if a.staged or b.staged else "direct"
    kind = "lanes" if spread.k_layout else "tensor" if spread.collective else kind
    fmas = a.steps * prod(axis.registers for axis in spread.axes) / spread.lanes_per_piece
    fmas /= TENSOR if kind == "tensor" else 1.0
    fmas *= 1.0 if contraction(kernel).order != "rows" else 1.0 + BANKS
    asynchronous = any(copy.mode != "registers" for copy in copies(kernel))
    shared = (x for x in kernel.buffers if x.space is Space.SHARED)
    stages = min((1 if x.name == _slices(kernel) else x.stages for x in shared), default=1)
    fragments = [x.stages for x in kernel.buffers if x.role is Role.FRAGMENT]
    prefetched = bool(fragments) and min(fragments) > 1
    registers, held = estimated_registers(kernel), estimated_registers(kernel)
    allowed = allowed_registers(kernel.threads, kernel.bounds.blocks)
    shared_out = registers_by_role(kernel, program.target)
    if shared_out:  # which takes all that the launch leaves, whatever a thread needs
        _, allowed = shared_out
        held = allowed_registers(kernel.threads, blocks_per_multiprocessor(kernel))
    return BlockSizes(
        kind=kind,
        tile=(m, n, step),
        threads=kernel.threads,
        shared=interface.shared,
        registers=held,
        allowed=allowed,
        fmas=fmas,
        reads=a.reads + b.reads,
        copies=sum(x.copies for x in (a, b) if not x.is_single),
        transposes=sum(x.copies for x in (a, b) if x.is_single),
        stores=a.stores + b.stores,
        port=a.port + b.port if kind == "block" else 0.0,
        stages=stages if asynchronous else min(2, stages),
        accumulators=spread.registers,
        parts=work.parts,
        groups=work.groups,
        scatter={"lanes": 8.0, "tensor": 1.0}.get(kind, _scatter(program)),
        through=_through(program, a.bytes, b.bytes) * (1.0 if work.raster > 1 else SCATTERED),
        bytes=(a.bytes, b.bytes, BYTES[problem.c.dtype]),
        double=kernel.accumulator.dtype == "f64",
        operands=problem.a.dtype,
        waits=0.0 if prefetched else step * SHARED,
        spills=_spills(registers / allowed - 1.0 - SQUEEZE),
        producers=kernel.producers.threads,
        boxes=any(
            copy.mode == "tma" and kernel.buffer(copy.dst).space is Space.SHARED
            for copy in copies(kernel)
        ),
    )


def _slices(kernel: Kernel) -> str | None:
    """What C passes through, whose stages say nothing of the main loop."""
    outward = copy_outward(kernel)
    return outward.src if outward else None


def _through(program: Program, a: int, b: int) -> float:
    """Bytes of A and B that blocks read for a multiply-add; a cluster reads what it shares once."""
    problem, work = program.problem, program.main.work
    m, n = (work.size(x) * clusters.along(work, x) for x in (problem.m, problem.n))
    return b / m + a / n


class _Operand:
    """Accesses of one operand in a step, of a thread: from global memory to the multiply-adds.

    ``steps`` are a thread's k in a step; ``reads`` of fragments and ``stores`` are of shared
    memory.
    """

    def __init__(self, program: Program, tensor: str, letter: str, steps: int):
        kernel = program.main
        moves = copies(kernel)
        fill = next((c for c in moves if c.src == tensor), None)
        tile = tile_of(kernel, tensor)
        fetch = next((c for c in moves if tile and c.src == tile.name), None)
        axis, load = kernel.spread.axis(letter), fill.width if fill else 1
        self.steps, self.bytes = steps, BYTES[kernel.buffer(tensor).dtype]
        self.staged = tile is not None
        read = fetch.width if fetch else 1
        of_fragments = axis.registers / read
        if kernel.spread.collective:  # which a warp reads together, or the instruction itself
            of_fragments = 0.0 if fetch is None else axis.extent / axis.warps / LINE
        self.reads = steps * of_fragments if self.staged else 0.0
        self.is_single, self.stores, self.port = False, 0.0, 0.0
        if tile is None or fill is None:
            self.copies = steps * axis.registers / load
            return
        each = elements_of(kernel, tile.name) / kernel.copying_threads
        transposed = _last(kernel, tensor) != _last(kernel, tile.name)
        self.copies = 0.0 if fill.mode == "tma" else each / load  # warps have none for boxes
        if fill.mode == "registers":
            self.stores = each if transposed else each / load
        self.is_single = transposed and not self.stores
        clocks = 1.0 if read * self.bytes < 16 else 2.0 if axis.lanes <= 8 else 4.0
        self.port = self.reads * clocks + each * (_ways(kernel, fill) if transposed else 1)


def _last(kernel: Kernel, name: str) -> str:
    return kernel.buffer(name).letters[-1]


def _ways(kernel: Kernel, fill: Copy) -> int:
    """Bank conflicts of a transposing store: a vector of global memory is stored down a column.

    A warp's vectors, contiguous in global memory, start ``width`` columns apart; their rows in
    shared memory begin in banks that are ``width * row`` words apart, modulo 32.
    """
    tile = kernel.buffer(fill.dst)
    if tile.swizzle is not None:
        return 1
    run = tile.extent(_last(kernel, fill.src))
    row = tile.row * BYTES[tile.dtype] // BANK
    down = min(WARP, max(1, run // fill.width))
    banks = WARP // gcd(fill.width * row, WARP)
    return max(1, down // banks)


def _scatter(program: Program) -> float:
    """Sectors that a warp's store of C touches, relative to those that it could fill."""
    kernel, c = program.main, program.problem.c
    if copy_outward(kernel):
        return 1.0
    width = next(op.width for op in kernel.body if isinstance(op, Map))
    return max(1.0, min(SECTOR, kernel.spread.axis(c.letters[-1]).width) / width)


def _spills(over: float) -> float:
    """The slowdown if the share ``over`` of the registers is missing."""
    return MEMORIES if over > MISSING else 1.0 + SPILL * max(0.0, over)
