"""Kernels timed together with cuBLAS and checked: the rows of ``bench`` and ``ladder``."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import cast

from gemmgen.base.errors import CallError
from gemmgen.base.record import record
from gemmgen.calling.inputs import as_stored, drawn
from gemmgen.calling.launches import Case
from gemmgen.gpu import device, rivals
from gemmgen.gpu.bench_row import BenchRow
from gemmgen.gpu.compare import Reference
from gemmgen.gpu.device import DeviceArray, cupy
from gemmgen.gpu.elements import LIBRARY, elements, nan
from gemmgen.gpu.floor import lower_bound, on_tensor_cores
from gemmgen.gpu.launch import Kernel
from gemmgen.gpu.nvml import meter
from gemmgen.gpu.sampled_rows import complaint
from gemmgen.gpu.setup import Setup, setup
from gemmgen.gpu.timing import Timing, compare, time_interleaved
from gemmgen.ir.dtypes import DType
from gemmgen.ir.gemm_roles import contraction
from gemmgen.ir.interface import Interface
from gemmgen.ir.launch_shape import Shape
from gemmgen.ir.param import Param
from gemmgen.numerics.formats import Real
from gemmgen.pipeline import Emitted


@record
class Entry:
    """A kernel to time; ``reference`` computes the expected result of its epilogue.
    ``multiplied``: the type of the elements that its tensor cores multiply, if they do."""

    name: str
    kernel: Kernel
    reference: Reference | None = None
    multiplied: DType | None = None

    @classmethod
    def of(cls, name: str, emitted: Emitted, reference: Reference | None = None) -> Entry:
        """A kernel, compiled for the current GPU."""
        return cls(name, Kernel.of(emitted), reference, on_tensor_cores(emitted))


@record
class _Run:
    """A candidate ready to be timed: its launch, its output, and what is wrong with that."""

    launch: Callable[[], None]
    output: DeviceArray
    complaint: Callable[[], str | None]
    rivals: tuple[str, ...]  # the names of those with the same storage orders and types
    dtype: DType
    floor: float


def bench(
    entries: Sequence[Entry],
    shapes: Sequence[Mapping[str, int]],
    *,
    warmup: float = 1.0,
    rounds: int = 20,
    checked_rows: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[BenchRow, ...]:
    """Times ``entries``, cuBLAS and cublasLt interleaved at each of ``shapes``, on random normal
    numbers.

    alpha = 1 and beta = 0.  Outputs are poisoned before and checked after, all of them or this many
    ``checked_rows`` drawn at random; the L2 cache is warm.
    """
    rows: list[BenchRow] = []
    for done, shape in enumerate(shapes, 1):
        rows += _at(entries, shape, warmup, rounds, checked_rows)
        if progress is not None:
            progress(done, len(shapes))
    return tuple(rows)


def _at(
    entries: Sequence[Entry],
    shape: Mapping[str, int],
    warmup: float,
    rounds: int,
    checked_rows: int | None,
) -> list[BenchRow]:
    """The rows of one shape: rivals in each storage order that occurs, then the kernels."""
    inputs = _Inputs(checked_rows)
    theirs: dict[str, _Run] = {}
    ours: dict[str, _Run] = {}
    refused: dict[str, str] = {}
    bound: dict[str, float] = {}
    figures = device.figures(cupy().cuda.runtime.getDevice())
    for entry in entries:
        interface = entry.kernel.interface
        case = timed_case(in_order(interface, shape))
        floor = lower_bound(interface, shape, figures, entry.multiplied)
        bound[entry.name] = floor
        names = rivals.names_of(interface)
        for name in names:
            if name not in theirs:
                start = partial(rivals.rival, name, interface)
                found = inputs.run(start, interface, case, None, names, floor)
                theirs |= {} if found is None else {name: found}
        try:
            start = partial(_launch, entry.kernel, case)
            found = inputs.run(start, interface, case, entry.reference, names, floor)
        except CallError as refusal:
            refused[entry.name] = str(refusal)
        else:
            ours |= {} if found is None else {entry.name: found}
    runs = theirs | ours
    for run in runs.values():
        run.output.fill(nan(run.dtype))
    number = cupy().cuda.runtime.getDevice()
    with meter(number) as read:
        launches = {name: run.launch for name, run in runs.items()}
        timings = time_interleaved(launches, warmup=warmup, rounds=rounds, meter=read)
    gpu, about = device.name(number), setup(number)
    rows = [_row(name, run, timings, shape, about) for name, run in runs.items()]
    for name, why in refused.items():
        none = None, None, None, None, None, None
        spelled = tuple(shape.items())
        rows.append(BenchRow(name, spelled, *none, bound[name], False, gpu, why, about))
    return rows


def in_order(interface: Interface, shape: Mapping[str, int]) -> Shape:
    """M, N, K and batches of a shape by the names of its extents, which come in any order."""
    return tuple(shape[interface.extent(letter)] for letter in contraction(interface).letters)


def timed_case(shape: Shape) -> Case:
    """What kernels are timed with: random normal numbers, alpha 1 and beta 0."""
    return Case(shape, "normal")


def inputs(interface: Interface, case: Case) -> dict[str, DeviceArray]:
    """Numbers for every tensor, in their roles (``numerics.axes``), on the GPU."""
    return cast(dict[str, DeviceArray], drawn(interface, case, LIBRARY))


def arrays_of(interface: Interface, values: Mapping[str, DeviceArray]) -> dict[str, DeviceArray]:
    """The tensors as kernels take them."""
    return {p.name: _stored(interface, p, values[p.name]) for p in interface.tensors}


def _stored(interface: Interface, param: Param, values: DeviceArray) -> DeviceArray:
    numbers = as_stored(interface, param, cast(Real, values))
    found = elements(cast(DeviceArray, numbers), param.dtype)
    return cupy().ascontiguousarray(found)


_Kept = dict[tuple[str, ...], DeviceArray]
"""Arrays by tensors that are the same."""


@dataclass
class _Inputs:
    """What candidates read at a shape: those with the same tensors read the same memory."""

    checked_rows: int | None
    values: _Kept = field(default_factory=_Kept)
    stored: _Kept = field(default_factory=_Kept)

    def run(
        self,
        start: Callable[[Mapping[str, DeviceArray]], Callable[[], None] | None],
        interface: Interface,
        case: Case,
        reference: Reference | None,
        names: tuple[str, ...],
        floor: float,
    ) -> _Run | None:
        """A candidate, which ``start`` makes of its arrays, or None; its output is its own."""
        values, arrays = self._numbers(interface, case), dict[str, DeviceArray]()
        for param in interface.tensors:
            key = _key(param)
            if param.written or key not in self.stored:
                self.stored[key] = _stored(interface, param, values[param.name])
            arrays[param.name] = self.stored[key]
        launch = start(arrays)
        if launch is None:
            return None
        output = contraction(interface).c
        found = arrays[output.name]
        wrong = partial(
            complaint, interface, values, case, reference, found, limit=self.checked_rows
        )
        return _Run(launch, found, wrong, names, output.dtype, floor)

    def _numbers(self, interface: Interface, case: Case) -> dict[str, DeviceArray]:
        if any(_key(param) not in self.values for param in interface.tensors):
            found = inputs(interface, case)
            for param in interface.tensors:
                self.values.setdefault(_key(param), found[param.name])
        return {param.name: self.values[_key(param)] for param in interface.tensors}


def _key(param: Param) -> tuple[str, ...]:
    return (param.name, param.dtype, *param.indices)


def _launch(kernel: Kernel, case: Case, arrays: Mapping[str, DeviceArray]) -> Callable[[], None]:
    arguments: dict[str, object] = {**arrays, **case.scalars(kernel.interface)}
    return kernel.prepare(**arguments)


def _row(
    name: str,
    run: _Run,
    timings: Mapping[str, Timing],
    shape: Mapping[str, int],
    about: Setup,
) -> BenchRow:
    timing, ms = timings[name], timings[name].median
    others = [timings[rival] for rival in run.rivals if rival in timings]
    wrong = run.complaint()
    return BenchRow(
        name=name,
        shape=tuple(shape.items()),
        ms=ms,
        lower=timing.lower,
        upper=timing.upper,
        tflops=2 * math.prod(shape.values()) / ms / 1e9,
        share=others[0].median / ms if others else None,
        verdict=compare(timing, others[0]) if others else None,
        floor=run.floor,
        checked=wrong is None,
        gpu=device.name(cupy().cuda.runtime.getDevice()),
        note=wrong or "",
        setup=about,
        of_best=min(x.median for x in others) / ms if others else None,
        power=timing.power,
        sm_clock=timing.clock,
    )
