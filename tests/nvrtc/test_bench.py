"""The rows of ``bench`` by a GPU of NumPy: rivals, shares, floors, what is checked."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gemmgen.base.errors import CannotCheck
from gemmgen.base.source import Source
from gemmgen.gpu import device, nvml, rivals
from gemmgen.gpu.bench import Entry, bench
from gemmgen.gpu.bench_row import COLUMNS, BenchRow, as_json, table
from gemmgen.gpu.elements import elements, numbers
from gemmgen.gpu.floor import lower_bound, on_tensor_cores
from gemmgen.gpu.gpus import GPUS
from gemmgen.ir.gemm_roles import contraction
from gemmgen.ir.interface import Interface
from gemmgen.pipeline import Emitted, compile_source

from .stub_gpu import StubGpu

EXAMPLES = Path(__file__).parents[2] / "examples"
SHAPE = {"M": 96, "N": 40, "K": 32}
Multiply = Callable[[], None]


def emitted(name: str) -> Emitted:
    return compile_source(Source((EXAMPLES / f"{name}.sched").read_text(), name))


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[StubGpu]:
    """NumPy in place of CuPy; cuBLAS takes 2 ms and the best of cublasLt 1.6 ms."""
    found = StubGpu()
    module, stub = ModuleType("cupy"), found.cupy()
    vars(module).update({x: y for x, y in vars(np).items() if not x.startswith("__")})
    runtime = vars(stub.cuda.runtime)
    runtime["getDeviceCount"] = lambda: 1
    runtime["getDeviceProperties"] = lambda _: {"name": "NVIDIA H200", "major": 9, "minor": 0}
    runtime["deviceGetAttribute"] = lambda number, _: 132 if number == 16 else 1000
    vars(module)["cuda"] = stub.cuda
    monkeypatch.setitem(sys.modules, "cupy", module)
    monkeypatch.setattr(nvml, "LIBRARY", "libnot-there.so")
    kept = (device.cupy, device.capability, device.name, device.figures)
    for each in kept:
        each.cache_clear()

    def cublas(interface: Interface, arrays: Mapping[str, Any]) -> Multiply:
        return multiply(found, interface, arrays, 2.0)

    def cublaslt(interface: Interface, arrays: Mapping[str, Any]) -> tuple[Multiply, ...]:
        return tuple(multiply(found, interface, arrays, ms) for ms in (1.8, 1.6))

    monkeypatch.setattr(rivals, "run_cublas", cublas)
    monkeypatch.setattr(rivals, "lt_calls", cublaslt)
    yield found
    for each in kept:
        each.cache_clear()


def multiply(
    gpu: StubGpu, interface: Interface, arrays: Mapping[str, Any], ms: float, wrong: int = -1
) -> Multiply:
    """A product that takes so long; one row of C, from the end, may be ``wrong``."""
    work, product = gpu.kernel("", ms), contraction(interface)

    def launch() -> None:
        work()
        a, b, c = (product.a, product.b, product.c)
        said = f"{''.join(a.indices)},{''.join(b.indices)}->{''.join(c.indices)}"
        values: Any = [numbers(arrays[p.name], p.dtype).astype("float64") for p in (a, b)]
        result = np.einsum(said, *values)
        if wrong >= 0:
            result[-wrong] = np.inf if wrong == 1 else 100.0
        arrays[c.name][...] = elements(result, c.dtype)

    return launch


def entry(gpu: StubGpu, name: str, ms: float = 1.0, wrong: int = -1) -> Entry:
    made = emitted(name)

    def prepare(**arguments: Any) -> Multiply:
        return multiply(gpu, made.interface, arguments, ms, wrong)

    kernel: Any = SimpleNamespace(interface=made.interface, prepare=prepare)
    return Entry(name, kernel, None, on_tensor_cores(made))


def rows(*entries: Entry, checked_rows: int | None = None) -> dict[str, BenchRow]:
    found = bench(entries, [SHAPE], warmup=0.0, rounds=2, checked_rows=checked_rows)
    return {row.name: row for row in found}


@pytest.mark.parametrize("checked_rows", [None, 8])
def test_shares_of_cublas_and_of_the_best(gpu: StubGpu, checked_rows: int | None) -> None:
    found = rows(entry(gpu, "tensor_core"), checked_rows=checked_rows)
    theirs, best, ours = found.values()
    assert theirs.name.startswith("cuBLAS A[m,k]") and theirs.name.endswith("f16")
    assert best.name == theirs.name.replace("cuBLAS", "cublasLt")
    assert all(row.checked for row in found.values()), [row.note for row in found.values()]
    shares = [(row.share, row.of_best) for row in (theirs, best, ours)]
    assert shares == [
        pytest.approx((1.0, 0.8)), pytest.approx((1.25, 1.0)), pytest.approx((2.0, 1.6))
    ]  # fmt: skip


def test_without_a_call_of_cublas_the_share_is_of_cublaslt(
    gpu: StubGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = rows(entry(gpu, "mma/tf32"))
    assert [name.split()[0] for name in found] == ["cublasLt", "mma/tf32"]
    ours = found["mma/tf32"]
    assert ours.share == ours.of_best == pytest.approx(1.6)
    monkeypatch.setattr(rivals, "lt_calls", lambda *_: ())
    assert [*rows(entry(gpu, "mma/tf32"))] == ["mma/tf32"]

    def missing(*_: object) -> None:
        raise CannotCheck("libcublasLt is not installed")

    monkeypatch.setattr(rivals, "lt_calls", missing)
    assert [*rows(entry(gpu, "mma/tf32"))] == ["mma/tf32"]


@pytest.mark.parametrize(("wrong", "note"), [(1, "an infinity or a NaN"), (2, "instead of")])
def test_a_wrong_row_is_found(gpu: StubGpu, wrong: int, note: str) -> None:
    """The infinity also where the row is not among those that are compared."""
    limits = (None, 8) if wrong == 1 else (None,)
    for limit in limits:
        row = rows(entry(gpu, "tiled", wrong=wrong), checked_rows=limit)["tiled"]
        assert not row.checked
        assert (note if limit else "instead of") in row.note


def test_kernels_with_the_same_tensors_read_the_same_memory(gpu: StubGpu) -> None:
    seen: list[dict[str, Any]] = []
    one, two = entry(gpu, "tiled"), entry(gpu, "naive")
    for each in (one, two):
        prepare = each.kernel.prepare
        vars(each.kernel)["prepare"] = lambda prepare=prepare, **x: (seen.append(x), prepare(**x))[
            1
        ]
    rows(one, two)
    assert seen[0]["A"] is seen[1]["A"] and seen[0]["C"] is not seen[1]["C"]


@pytest.mark.parametrize(
    ("name", "rate"),
    [
        ("tiled", 128),
        ("tensor_core", 2048),
        ("mma/tf32", 1024),
        ("hopper/tf32", 1024),
        ("hopper/fp8", 4096),
        ("mma/split_f32", 2048 / 6),
        ("mma/f64", 128),
        ("types/f64", 64),
    ],
)
def test_the_floor_is_by_the_units_that_multiply(name: str, rate: float) -> None:
    made, gpu = emitted(name), GPUS["H200"]
    shape = dict.fromkeys("MNK", 8192)
    ms = lower_bound(made.interface, shape, gpu, on_tensor_cores(made))
    assert ms == pytest.approx(1e3 * 8192**3 / (rate * gpu.sms * gpu.clock))


def test_power_and_clock_are_columns_and_fields(gpu: StubGpu) -> None:
    row = rows(entry(gpu, "tiled"))["tiled"]
    assert (row.power, row.sm_clock) == (None, None)
    measured = BenchRow(**{**vars(row), "power": 612.4, "sm_clock": 1755})
    (found,) = as_json([measured])
    assert (found["power"], found["sm_clock"], found["of_best"]) == (612.4, 1755, row.of_best)
    for shown, expected in ((row, ["", ""]), (measured, ["612", "1755"])):
        cells = [next(iter(column.cells)) for column in table([shown]).columns]
        at = 2 + COLUMNS.index("W")
        assert cells[at : at + 2] == expected
