"""Count what a schedule costs at a shape on a GPU; no GPU is needed.

Over 300 lines: the sections of one report, in its order.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from math import prod

from gemmgen.analyze.access_counts import Counts, LaunchCounts
from gemmgen.analyze.analyzed_kernel import AnalyzedKernel, Values, compile_kernel
from gemmgen.analyze.block_classes import tiles_of
from gemmgen.analyze.count import count_compiled
from gemmgen.analyze.executed_fmas import multiply_adds, outside_loops
from gemmgen.analyze.formulas import Formula, formulas_of, total
from gemmgen.analyze.launch_arguments import Shape, arguments_of
from gemmgen.analyze.load_joining import as_compiled, as_written
from gemmgen.analyze.operation_counts import Operations, Unfused, operations_of, unfused
from gemmgen.analyze.pads import PadChoice, pad_choices
from gemmgen.analyze.resources import (
    Occupancy,
    Resources,
    Waves,
    occupancy_of,
    resources_of,
    waves_of,
)
from gemmgen.analyze.roofline import Demand, Roofline, matrix_bytes, roofline_of
from gemmgen.analyze.shared_strips import SharedStrips, shared_strips
from gemmgen.analyze.transactions import SECTOR
from gemmgen.base.errors import UsageError
from gemmgen.base.record import record
from gemmgen.gpu.gpus import Gpu
from gemmgen.ir.atoms import ATOMS
from gemmgen.ir.dtypes import RAW, ROUNDED
from gemmgen.ir.edit import contraction, loads_boxes, pipeline_of, tile_of
from gemmgen.ir.lowered import LoweredKernel
from gemmgen.ir.thread_code import Leave
from gemmgen.schedule.model import Schedule
from gemmgen.summation import SummationOrder, summation_order


@record
class Traffic:
    """All accesses of one buffer in one direction; ``widths``, in elements: none if TMA has all."""

    buffer: str
    write: bool
    widths: tuple[int, ...]
    counts: Counts

    @property
    def name(self) -> str:
        return f"{self.buffer} {'write' if self.write else 'read'}"


@record
class Explanation:
    """``launch`` has the counts site by site, ``traffic`` buffer by buffer.

    ``unfused``: what elementwise kernels in place of the epilogue would add; None if it is a
    product as BLAS has it.  ``joined`` has the reads of shared memory that the compiler joins into
    wider ones, as it does: the roofline uses their counts in place of the text's (``hardware``).
    ``shared``: what blocks that run at once read, if the schedule has an order for them.
    """

    kernel: AnalyzedKernel
    shape: Shape
    gpu: Gpu
    beta: float
    launch: LaunchCounts
    traffic: tuple[Traffic, ...]
    formulas: tuple[Formula, ...]
    operations: Operations
    unfused: Unfused | None
    pads: tuple[PadChoice, ...]
    resources: Resources
    occupancy: Occupancy
    waves: Waves
    roofline: Roofline
    fmas: int
    joined: tuple[Traffic, ...]
    uniform: bool
    shared: SharedStrips | None

    @property
    def hardware(self) -> tuple[Traffic, ...]:
        """``traffic`` as compiled."""
        instead = {t.name: t for t in self.joined}
        return tuple(instead.get(t.name, t) for t in self.traffic)

    @property
    def attainable(self) -> float:
        """Operations a second below the roofline."""
        return self.roofline.attainable

    @cached_property
    def summation(self) -> SummationOrder:
        """How an element of C is summed; it decides the bits of the result."""
        return summation_order(self.kernel.program, self.kernel.lowered)

    @property
    def balance(self) -> float:
        """The share of the SMs' time that has a block if one SM gets the most blocks that it
        must.  1 where blocks are of unequal size."""
        return _balance(self.waves, uniform=self.uniform)


def explain(
    schedule: Schedule, shape: Shape, gpu: Gpu, *, beta: float = 0.0, pads: bool = True
) -> Explanation:
    """Counts are exact; C is read only if ``beta`` is not 0 or the epilogue reads it anyway.

    Without ``pads`` no other pad or swizzle is tried, which can take most of the time, and the
    result has none.

    Raises ``UsageError`` for a shape that the kernel does not take, or a GPU that it does not fit.
    """
    kernel = compile_kernel(schedule)
    values = arguments_of(kernel.lowered.interface, kernel.program.problem, shape, beta=beta)
    counted = _counted(kernel, values)
    launch = as_written(counted)
    resources = resources_of(kernel.emitted, kernel.lowered, gpu)
    occupancy = occupancy_of(resources, gpu)
    if not occupancy.blocks:
        raise UsageError(f"a block does not fit on an SM of {gpu.name}: {occupancy.limiter}")
    interface, blocks = kernel.lowered.interface, _tile_blocks(kernel, values)
    fmas = multiply_adds(kernel.program, kernel.lowered, values, blocks)
    compiled = as_compiled(counted, resources.read_widths)
    waves = waves_of(interface, blocks, occupancy, gpu)
    uniform = _is_uniform(kernel, values)
    work = _work(kernel, values, compiled, fmas, shape, _balance(waves, uniform=uniform))
    return Explanation(
        kernel,
        shape,
        gpu,
        beta,
        launch,
        traffic_of(launch),
        formulas_of(kernel.program, launch, shape, blocks),
        operations_of(kernel.program.problem.written, shape),
        unfused(kernel.program.problem.written, shape),
        pad_choices(kernel.program, kernel.lowered, values) if pads else (),
        resources,
        occupancy,
        waves,
        roofline_of(work, gpu),
        fmas,
        _joined(launch, compiled),
        uniform,
        _shared_strips(kernel, values, waves.per_wave),
    )


def _balance(waves: Waves, *, uniform: bool) -> float:
    return waves.balance if uniform else 1.0


def _counted(kernel: AnalyzedKernel, values: Values) -> LaunchCounts:
    return dict(_kept_counts(kernel.lowered, tuple(values.items())))


@lru_cache(32)
def _kept_counts(
    lowered: LoweredKernel, values: tuple[tuple[str, int | float], ...]
) -> LaunchCounts:
    """Kept: drawings, report and figures of a kernel are of one launch, and counting takes most of
    their time."""
    return count_compiled(lowered, dict(values))


def roofline_at(schedule: Schedule, shape: Shape, gpu: Gpu, *, beta: float = 0.0) -> Roofline:
    """The bounds of a schedule, with all reads joined that a compiler may join.  Raises as
    ``explain`` does."""
    kernel = compile_kernel(schedule)
    values = arguments_of(kernel.lowered.interface, kernel.program.problem, shape, beta=beta)
    blocks = _tile_blocks(kernel, values)
    fmas = multiply_adds(kernel.program, kernel.lowered, values, blocks)
    compiled = as_compiled(_counted(kernel, values), None)
    waves, uniform = Waves(blocks, blocks, gpu.sms), _is_uniform(kernel, values)
    balance = _balance(waves, uniform=uniform)
    return roofline_of(_work(kernel, values, compiled, fmas, shape, balance), gpu)


def traffic_of(launch: LaunchCounts) -> tuple[Traffic, ...]:
    """The traffic by buffer: global memory, then shared memory, each in program order."""
    keys = dict.fromkeys((site.space, site.buffer, site.write) for site in launch)
    found: list[Traffic] = []
    for _, buffer, write in sorted(keys, key=lambda key: key[0]):
        sites = [s for s in launch if s.buffer == buffer and s.write == write]
        widths = tuple(sorted({s.width for s in sites if launch[s].requests}, reverse=True))
        counts = total(launch, (buffer,), write=write)
        if counts.elements:
            found.append(Traffic(buffer, write, widths, counts))
    return tuple(found)


def _tile_blocks(kernel: AnalyzedKernel, values: Values) -> int:
    """The tiles of C, and the parts of each: as many blocks, if each computes one."""
    return tiles_of(kernel.lowered, values) * kernel.lowered.interface.parts


def _joined(launch: LaunchCounts, compiled: LaunchCounts) -> tuple[Traffic, ...]:
    """The traffic of the reads that the compiler joins, after joining."""
    written = {t.name: t for t in traffic_of(launch)}
    return tuple(t for t in traffic_of(compiled) if t != written.get(t.name))


def _is_uniform(kernel: AnalyzedKernel, values: Values) -> bool:
    """Whether all blocks do equal work: no edge tile, and no shorter range of k."""
    interface, pipeline = kernel.lowered.interface, pipeline_of(kernel.program.main)
    if any(isinstance(node, Leave) for node in outside_loops(kernel.lowered.body)):
        return all(int(values[name]) % size == 0 for name, size in interface.tiles)
    step = pipeline.step if pipeline else 1
    steps = -(-int(values[interface.extent(kernel.program.problem.k)]) // step)
    return steps % interface.parts == 0


def _work(
    kernel: AnalyzedKernel,
    values: Values,
    launch: LaunchCounts,
    fmas: int,
    shape: Shape,
    balance: float,
) -> Demand:
    shared = sum((c for s, c in launch.items() if s.space == "shared"), Counts())
    contract, products = (
        contraction(kernel.program.main),
        kernel.lowered.interface.arithmetic.products,
    )
    return Demand(
        2 * prod(shape),
        fmas * products,
        _compulsory(kernel, values, launch),
        _through_l2(kernel, launch, shape),
        shared,
        sum((c for s, c in launch.items() if s.space == "global"), Counts()),
        _conversions(kernel, launch),
        kernel.program.problem.accumulate,
        contract.atom,
        contract.into or kernel.program.problem.a.dtype,
        products,
        balance,
        boxes=loads_boxes(kernel.program.main),
    )


def _shared_strips(kernel: AnalyzedKernel, values: Values, at_once: int) -> SharedStrips | None:
    """None if the schedule says nothing of the order of the tiles, or C is empty."""
    ordered = kernel.program.main.work.raster > 1 and tiles_of(kernel.lowered, values)
    return shared_strips(kernel.lowered, values, at_once) if ordered else None


def _conversions(kernel: AnalyzedKernel, launch: LaunchCounts) -> int:
    """Conversions before the multiply-adds.  CUDA cores convert each element of fewer bits; tensor
    cores need conversions only for rounded types (tf32) and for each term of a split element."""
    problem, main, found = kernel.program.problem, kernel.program.main, 0
    contract = contraction(main)
    traits = ATOMS[contract.atom]
    rounded = () if traits.cuts else ROUNDED
    converted = (*RAW, *rounded) if contract.atom == "fma" else rounded
    splits = traits.splits is not None
    for operand in (problem.a, problem.b):
        if operand.dtype in converted or splits:
            tile = tile_of(main, operand.name)
            read = tile.name if tile else operand.name
            elements = total(launch, (read,), write=False).elements
            found += elements * (contract.parts if splits else 1)
    return found


def _compulsory(kernel: AnalyzedKernel, values: Values, launch: LaunchCounts) -> int:
    """The bytes of all matrices, each read or written once."""
    interface, found = kernel.lowered.interface, 0
    extents = {name: int(value) for name, value in values.items()}
    touched = {(site.buffer, site.write) for site, counts in launch.items() if counts.elements}
    for param in interface.params:
        if param.kind == "tensor":
            sizes = (interface.size(letter, extents) for letter in param.indices)
            times = sum((param.name, write) in touched for write in (False, True))
            found += times * matrix_bytes(param.dtype, *sizes)
    return found


def _through_l2(kernel: AnalyzedKernel, launch: LaunchCounts, shape: Shape) -> int:
    """Bytes between L2 and the SMs: sectors that are staged in shared memory, and those of C. What
    threads read directly counts once per block, since L1 can hold it."""
    problem, main = kernel.program.problem, kernel.program.main
    whole = {problem.c.name, *(param.name for param in kernel.lowered.interface.scratch)}
    found = SECTOR * sum(counts.sectors for site, counts in launch.items() if site.buffer in whole)
    for operand, other in ((problem.a, problem.n), (problem.b, problem.m)):
        if tile_of(main, operand.name):
            found += SECTOR * total(launch, (operand.name,), write=False).sectors
        else:
            found += matrix_bytes(operand.dtype, *shape) // main.work.size(other)
    return found
