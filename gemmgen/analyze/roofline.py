"""What bounds a kernel: the least time that each part of the GPU needs for its share of the work.

Each bound is a floor of the time, so their greatest gives a ceiling of TFLOP/s; latency comes on
top.  Demand at ragged edges counts as the kernel does it.  What the units of SMs do takes as long
as the SM with the most blocks needs.
"""

from __future__ import annotations

from math import prod

from gemmgen.analyze.access_counts import Counts
from gemmgen.analyze.fragment_accesses import MULTIPLY_ADDS
from gemmgen.base.record import record
from gemmgen.base.units import count, size
from gemmgen.gpu.gpus import SCHEDULERS, Gpu
from gemmgen.ir.atoms import ATOMS, Atom
from gemmgen.ir.dtypes import BYTES, DType
from gemmgen.ir.target import WARP

INTEGER_LANES = 64
TMA = 1.65
"""How much faster than loads by threads tiles may arrive from L2 by TMA: at 12.1 TB/s in the
fastest such kernels that were timed on an NVIDIA H200 (``docs/data/warpgroups.json``)."""


@record
class Demand:
    """Of a launch. ``fmas``: multiply-adds of all threads, those of padding included, in
    ``accumulators``, ``products`` for each pair of elements; ``conversions``: operands of fewer
    bits made ready for them; ``operands``: the type of what is multiplied.

    ``compulsory`` and ``through_l2``: bytes between device memory and L2, where every matrix
    element comes once, and between L2 and the SMs.  ``balance``: the mean work of an SM as a share
    of that of the SM with the most.  ``boxes``: TMA loads the tiles of A and B.
    """

    flops: int
    fmas: int
    compulsory: int
    through_l2: int
    shared: Counts
    globals: Counts
    conversions: int = 0
    accumulators: DType = "f32"
    atom: Atom = "fma"
    operands: DType = "f32"
    products: int = 1
    balance: float = 1.0
    boxes: bool = False


@record
class Bound:
    """A bound: at least ``seconds``, because of ``what``; ``how`` says how it is computed."""

    name: str
    seconds: float
    how: str


@record
class Roofline:
    """``flops`` useful operations within ``bounds``; ``intensity``: operations for each byte of
    device memory; ``ridge``: the intensity from which on memory no longer bounds."""

    flops: int
    intensity: float
    ridge: float
    peak: float
    bounds: tuple[Bound, ...]

    @property
    def binding(self) -> Bound:
        return max(self.bounds, key=lambda bound: bound.seconds)

    @property
    def attainable(self) -> float:
        """Operations a second."""
        return self.flops / self.binding.seconds


def roofline_of(work: Demand, gpu: Gpu) -> Roofline:
    per_second = gpu.sms * gpu.clock * work.balance
    rate, peak = _rate(work, gpu), _peak(work, gpu)
    instructions = work.fmas / WARP / _of_instruction(work.atom)
    memory = work.shared.requests + work.globals.requests
    ports = work.shared.clocks + work.globals.lines
    converted = work.conversions / WARP
    how = f", {count(converted)} conversions" if converted else ""
    bounds = [
        rate,
        Bound(
            "issue slots",
            (instructions + memory + converted) / SCHEDULERS / per_second,
            f"{count(instructions)} {'multiply-adds' if work.atom == 'fma' else 'multiplications'}"
            f"{how} and {count(memory)} memory requests of warps, {SCHEDULERS} a clock and SM",
        ),
        Bound(
            "shared memory and L1",
            ports / per_second,
            f"{count(work.shared.clocks)} clocks of shared memory, "
            f"{count(work.globals.lines)} lines of L1, one a clock and SM",
        ),
    ]
    if gpu.l2 is not None:
        speed = gpu.l2 * (TMA if work.boxes else 1.0)
        how = f"{size(work.through_l2)} at {size(speed)}/s"
        bounds.append(Bound("L2", work.through_l2 / speed, how))
    how = f"{size(work.compulsory)}, each matrix once, at {size(gpu.memory)}/s"
    bounds.append(Bound("device memory", work.compulsory / gpu.memory, how))
    return Roofline(
        work.flops, work.flops / work.compulsory, peak / gpu.memory, peak, tuple(bounds)
    )


def _of_instruction(atom: Atom) -> int:
    """Multiply-adds of a lane in one instruction of the machine."""
    traits = ATOMS[atom]
    return MULTIPLY_ADDS if atom == "wmma" else traits.m * traits.most_n * traits.k // traits.lanes


def _rate(work: Demand, gpu: Gpu) -> Bound:
    """The bound of the units that execute the multiply-adds."""
    per_second = gpu.sms * gpu.clock * work.balance
    if work.atom != "fma":
        peak = gpu.tensor_lanes(work.operands)
        share = 1.0 if ATOMS[work.atom].in_place else gpu.through_mma(work.operands)
        lanes = peak * share
        how = f"{count(work.fmas)} multiply-adds, {lanes:.0f} a clock and SM"
        if share < 1:
            how += f" by instructions of a warp, {share:.0%} of {peak}"
        return Bound("tensor cores", work.fmas / lanes / per_second, how)
    lanes = _lanes(work, gpu)
    how = f"{count(work.fmas)} multiply-adds, {lanes} a clock and SM"
    name = {"f64": "FP64", "i32": "INT32"}.get(work.accumulators, "FP32")
    return Bound(f"{name} lanes", work.fmas / lanes / per_second, how)


def _lanes(work: Demand, gpu: Gpu) -> int:
    """Multiply-adds a clock and SM; of integers as the CUDA C++ Programming Guide's table of
    arithmetic instructions has them from sm_75 to sm_90."""
    return {"f64": gpu.double_lanes, "i32": INTEGER_LANES}.get(work.accumulators, gpu.lanes)


def _peak(work: Demand, gpu: Gpu) -> float:
    """Operations a second of those units; a multiply-add is two, or all of its products are."""
    lanes = _lanes(work, gpu) if work.atom == "fma" else gpu.tensor_lanes(work.operands)
    return gpu.flops / gpu.lanes * lanes / work.products


def matrix_bytes(dtype: DType, *shape: int) -> int:
    return BYTES[dtype] * prod(shape)
