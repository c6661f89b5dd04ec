"""The features of a schedule for the estimate: its sizes, from the declared program."""

from __future__ import annotations

from math import gcd, prod

from gemmgen.base.record import record
from gemmgen.ir.buffers import Space
from gemmgen.ir.dtypes import BYTES
from gemmgen.ir.edit import contraction, copies, pipeline_of
from gemmgen.ir.interface import Interface
from gemmgen.ir.nodes import Copy, Kernel, Program
from gemmgen.ir.occupancy import elements_of, estimated_registers
from gemmgen.ir.target import WARP

BANK = 4
"""Bytes of a bank of shared memory, and of a register."""


@record
class OperandTraffic:
    """The traffic of one operand from global memory to the multiply-adds.

    ``tile``: elements of a step's tile in shared memory, 0 without one.  ``load`` and ``read`` are
    the widths of accesses of global and of shared memory; ``store`` that of stores to shared
    memory.  ``micro``: elements of a thread's fragment, or its share of a warp's.  ``lanes``:
    threads of a warp that read different fragments.  ``ways``: bank conflicts of a warp's stores.
    ``bytes`` are an element's.
    """

    tile: int
    load: int
    store: int
    read: int
    micro: float
    lanes: int
    ways: int
    bytes: int


@record
class Facts:
    """Features of a schedule that don't depend on the problem's extents.

    ``registers`` are estimated (``estimated_registers``).  ``stages`` of the shared tiles, 1
    without prefetching.  ``ahead``: fragments are prefetched.  ``reuse``: consecutive multiply-adds
    share operands.  ``micro``: multiply-adds of a thread for one k.  ``parts`` blocks split the K
    of a tile, whose sums are reduced in ``groups``.  ``blocks``: minimum resident blocks per
    multiprocessor of the launch bounds, 0 if not given.  ``element``: C's bytes.
    """

    tile: tuple[int, int, int]
    threads: int
    shared: int
    registers: int
    a: OperandTraffic
    b: OperandTraffic
    stages: int
    ahead: bool
    asynchronous: bool
    reuse: bool
    raster: int
    micro: float
    tensor: bool
    double: bool
    parts: int
    groups: int
    blocks: int
    element: int


def facts_of(program: Program, interface: Interface) -> Facts:
    """From ``program`` after all passes, and ``interface`` after lowering."""
    kernel, problem = program.main, program.problem
    pipeline = pipeline_of(kernel)
    m, n = (kernel.work.size(letter) for letter in (problem.m, problem.n))
    tiles = [b for b in kernel.buffers if b.space is Space.SHARED]
    slots = [b.stages for b in kernel.buffers if b.name.endswith("_frag")]
    moves = copies(kernel)
    return Facts(
        tile=(m, n, pipeline.step if pipeline else 1),
        threads=kernel.spread.threads,
        shared=interface.static_shared + interface.dynamic_shared,
        registers=estimated_registers(kernel),
        a=_operand(program, problem.a.name, problem.m),
        b=_operand(program, problem.b.name, problem.n),
        stages=min((b.stages for b in tiles), default=1),
        ahead=bool(slots) and min(slots) > 1,
        asynchronous=any(copy.mode != "registers" for copy in moves),
        reuse=contraction(kernel).order != "rows",
        raster=kernel.work.raster,
        micro=prod(axis.registers for axis in kernel.spread.axes) / kernel.spread.lanes_per_piece,
        tensor=contraction(kernel).atom != "fma",
        double=kernel.buffer("acc").dtype == "f64",
        parts=kernel.work.parts,
        groups=kernel.work.groups,
        blocks=kernel.bounds.blocks,
        element=BYTES[kernel.buffer(problem.c.name).dtype],
    )


def _operand(program: Program, tensor: str, letter: str) -> OperandTraffic:
    kernel = program.main
    moves = copies(kernel)
    fill = next((c for c in moves if c.src == tensor), None)
    staged = kernel.has(f"{tensor}_shared")
    fetch = next((c for c in moves if c.src == f"{tensor}_shared"), None)
    axis = kernel.spread.axis(letter)
    load = fill.width if fill else 1
    straight = staged and _last(kernel, tensor) == _last(kernel, f"{tensor}_shared")
    return OperandTraffic(
        tile=elements_of(kernel, f"{tensor}_shared") if staged else 0,
        load=load,
        store=load if straight else 1,
        read=fetch.width if fetch else 1,
        micro=axis.registers / kernel.spread.lanes_per_piece,
        lanes=min(axis.lanes, WARP),
        bytes=BYTES[kernel.buffer(tensor).dtype],
        ways=1 if straight or fill is None or not staged else _ways(kernel, fill),
    )


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
    row = (tile.extent(tile.letters[-1]) + tile.pad) * BYTES[tile.dtype] // BANK
    down = min(WARP, max(1, run // fill.width))
    banks = WARP // gcd(fill.width * row, WARP)
    return max(1, down // banks)
