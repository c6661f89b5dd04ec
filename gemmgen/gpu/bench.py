"""Kernels timed together with cuBLAS and checked: the rows of ``bench`` and ``ladder``."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import cast

from rich.table import Table

from gemmgen.base.errors import CallError
from gemmgen.base.record import record
from gemmgen.calling.gemm_roles import Contraction, contraction
from gemmgen.calling.inputs import as_stored, drawn
from gemmgen.calling.launches import Case, Shape
from gemmgen.gpu import device
from gemmgen.gpu.compare import Expected, Reference, wanted
from gemmgen.gpu.cublas_calls import is_plain, run_cublas
from gemmgen.gpu.device import DeviceArray, cupy
from gemmgen.gpu.elements import LIBRARY, elements, nan
from gemmgen.gpu.launch import Kernel
from gemmgen.gpu.setup import Setup, described, setup
from gemmgen.gpu.timing import Timing, Verdict, compare, time_interleaved
from gemmgen.ir.dtypes import BYTES, DType
from gemmgen.ir.interface import Interface
from gemmgen.numerics.formats import Real

CUBLAS = "cuBLAS"


@record
class Entry:
    """A kernel to time; ``reference`` computes the expected result of its epilogue."""

    name: str
    kernel: Kernel
    reference: Reference | None = None


@record
class BenchRow:
    """One kernel at one shape; ``ms`` is None if it couldn't be called, and ``note`` says why.

    ``lower`` and ``upper`` are quartiles.  ``share`` is cuBLAS's time over this one's, for the same
    storage orders; None without a comparable call.  ``verdict`` compares the two, ties under 1%.
    ``floor`` is the least time that the GPU's arithmetic rate and memory bandwidth allow.
    ``checked``: the result left by the timed launches was right.  ``setup``: the clock right after
    them, and the versions of the libraries.
    """

    name: str
    shape: tuple[tuple[str, int], ...]
    ms: float | None
    lower: float | None
    upper: float | None
    tflops: float | None
    share: float | None
    verdict: Verdict | None
    floor: float
    checked: bool
    gpu: str
    note: str = ""
    setup: Setup = Setup()


@record
class _Run:
    """A candidate ready to be timed: its launch, its output, and the expected result."""

    launch: Callable[[], None]
    output: DeviceArray
    expected: Callable[[], Expected]
    rival: str  # the name of the cuBLAS call with the same storage orders and types
    dtype: DType


def bench(
    entries: Sequence[Entry],
    shapes: Sequence[Mapping[str, int]],
    *,
    warmup: float = 1.0,
    rounds: int = 20,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[BenchRow, ...]:
    """Times ``entries`` and cuBLAS interleaved at each of ``shapes``, on random normal numbers.

    alpha = 1 and beta = 0.  Outputs are poisoned before and checked after; the L2 cache is warm.
    """
    rows: list[BenchRow] = []
    for done, shape in enumerate(shapes, 1):
        rows += _at(entries, shape, warmup, rounds)
        if progress is not None:
            progress(done, len(shapes))
    return tuple(rows)


def as_json(rows: Sequence[BenchRow]) -> list[dict[str, object]]:
    """``rows`` as plain dictionaries, the shape as one too; clock and versions are fields."""
    found: list[dict[str, object]] = []
    for row in rows:
        fields: dict[str, object] = dataclasses.asdict(row)
        del fields["setup"]
        found.append({**fields, "shape": dict(row.shape), **dataclasses.asdict(row.setup)})
    return found


def measured_on(rows: Sequence[BenchRow]) -> str:
    """``NVIDIA H200 (SM clock 1980 MHz, driver 580.95.05, CUDA 13.0, cuBLAS 13.1.0)``."""
    about = described(row.setup for row in rows)
    return rows[0].gpu + (f" ({about})" if about else "")


def table(rows: Sequence[BenchRow]) -> Table:
    """``rows`` for a terminal."""
    found = Table(title=measured_on(rows) if rows else None)
    for name in ("kernel", "shape"):
        found.add_column(name)
    for name in ("ms", "quartiles", "TFLOP/s", "of cuBLAS", "over floor", "checked"):
        found.add_column(name, justify="right")
    for row in rows:
        shape = "x".join(str(size) for _, size in row.shape)
        if row.ms is None or row.lower is None or row.upper is None or row.tflops is None:
            found.add_row(row.name, shape, "-", "-", "-", "-", "-", row.note)
            continue
        share = "" if row.share is None else f"{row.share:.3f}"
        tie = " (tie)" if row.verdict == "tie" and not row.name.startswith(CUBLAS) else ""
        found.add_row(
            row.name,
            shape,
            f"{row.ms:.4f}",
            f"{row.lower:.4f}-{row.upper:.4f}",
            f"{row.tflops:.2f}",
            share + tie,
            f"{row.ms / row.floor:.2f}" if row.floor else "",
            "yes" if row.checked else f"WRONG: {row.note}" if row.note else "no",
        )
    return found


def _at(
    entries: Sequence[Entry], shape: Mapping[str, int], warmup: float, rounds: int
) -> list[BenchRow]:
    """The rows of one shape: cuBLAS in each storage order that occurs, then the kernels."""
    runs: dict[str, _Run] = {}
    refused: dict[str, str] = {}
    shared: dict[tuple[str, ...], DeviceArray] = {}
    for entry in entries:
        interface = entry.kernel.interface
        case = timed_case(in_order(interface, shape))
        values = _values(interface, case, shared)
        product = contraction(interface)
        rival = f"{CUBLAS} {_orders(product)}"
        if rival not in runs and is_plain(interface):
            runs[rival] = _cublas(interface, values, case, rival)
        try:
            runs[entry.name] = _prepared(entry, values, case, rival)
        except CallError as refusal:
            refused[entry.name] = str(refusal)
    for run in runs.values():
        run.output.fill(nan(run.dtype))
    timings = time_interleaved(
        {name: run.launch for name, run in runs.items()}, warmup=warmup, rounds=rounds
    )
    number = cupy().cuda.runtime.getDevice()
    gpu, about = device.name(number), setup(number)
    floor = lower_bound(entries[0].kernel.interface, shape)
    rows = [_row(name, run, timings, shape, floor, about) for name, run in runs.items()]
    spelled = tuple(shape.items())
    for name, why in refused.items():
        none = None, None, None, None, None, None
        rows.append(BenchRow(name, spelled, *none, floor, False, gpu, why, about))
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


def _values(
    interface: Interface, case: Case, shared: dict[tuple[str, ...], DeviceArray]
) -> dict[str, DeviceArray]:
    """Random inputs; kernels with the same tensors read the same memory."""
    keys = {p.name: (p.name, p.dtype, *p.indices) for p in interface.tensors}
    if any(key not in shared for key in keys.values()):
        for name, array in inputs(interface, case).items():
            shared.setdefault(keys[name], array)
    return {name: shared[key] for name, key in keys.items()}


def arrays_of(interface: Interface, values: Mapping[str, DeviceArray]) -> dict[str, DeviceArray]:
    """The tensors as kernels take them."""
    found: dict[str, DeviceArray] = {}
    for param in interface.tensors:
        numbers = as_stored(interface, param, cast(Real, values[param.name]))
        stored = elements(cast(DeviceArray, numbers), param.dtype)
        found[param.name] = cupy().ascontiguousarray(stored)
    return found


def _prepared(entry: Entry, values: dict[str, DeviceArray], case: Case, rival: str) -> _Run:
    interface = entry.kernel.interface
    output, stored = contraction(interface).c, arrays_of(interface, values)
    arguments: dict[str, object] = {**stored, **case.scalars(interface)}
    launch = entry.kernel.prepare(**arguments)
    want = partial(wanted, interface, values, case, entry.reference)
    return _Run(launch, stored[output.name], want, rival, output.dtype)


def _cublas(interface: Interface, values: dict[str, DeviceArray], case: Case, name: str) -> _Run:
    output, arrays = contraction(interface).c, arrays_of(interface, values)
    want = partial(wanted, interface, values, case, None)
    return _Run(run_cublas(interface, arrays), arrays[output.name], want, name, output.dtype)


def _row(
    name: str,
    run: _Run,
    timings: Mapping[str, Timing],
    shape: Mapping[str, int],
    floor: float,
    about: Setup,
) -> BenchRow:
    timing, rival = timings[name], timings.get(run.rival)
    complaint = run.expected().difference(run.output, run.dtype)
    ms = timing.median
    return BenchRow(
        name=name,
        shape=tuple(shape.items()),
        ms=ms,
        lower=timing.lower,
        upper=timing.upper,
        tflops=2 * math.prod(shape.values()) / ms / 1e9,
        share=None if rival is None else rival.median / ms,
        verdict=None if rival is None else compare(timing, rival),
        floor=floor,
        checked=complaint is None,
        gpu=device.name(cupy().cuda.runtime.getDevice()),
        note=complaint or "",
        setup=about,
    )


def lower_bound(interface: Interface, shape: Mapping[str, int]) -> float:
    """The roofline in milliseconds for these types, without tensor cores:
    max(flops / rate, bytes / bandwidth)."""
    product = contraction(interface)
    gpu = device.figures(cupy().cuda.runtime.getDevice())
    lanes = gpu.double_lanes if product.c.dtype == "f64" else gpu.lanes
    rate = 2.0 * lanes * gpu.sms * gpu.clock
    size = sum(
        BYTES[param.dtype] * math.prod(shape[interface.extent(letter)] for letter in param.indices)
        for param in (product.a, product.b, product.c)
    )
    return 1e3 * max(2 * math.prod(shape.values()) / rate, size / gpu.memory)


def _orders(product: Contraction) -> str:
    matrices = (product.a, product.b, product.c)
    spelled = [f"{p.name}[{','.join(p.indices)}]" for p in matrices]
    types = [p.dtype for p in matrices]
    if set(types) != {"f32"}:
        spelled.append("/".join(dict.fromkeys(types)))
    return " ".join(spelled)
