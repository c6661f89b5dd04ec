"""Which kernels a range gets, and the table by which the dispatcher chooses among them."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from functools import cache
from math import inf
from pathlib import Path

import pytest

from gemmgen.gpu.gpu_names import gpu_named
from gemmgen.library import dispatch_table
from gemmgen.library.chosen_kernels import kernels_of
from gemmgen.library.dispatch_table import (
    CLOSE,
    MOST_LOOKED_AT,
    Table,
    TableEntry,
    covering,
    grid_of,
    table_of,
    thinned,
)
from gemmgen.library.kernel_times import KernelTimes, KnownTime, TimedKernel, distance
from gemmgen.library.library_files import files_of
from gemmgen.library.library_spec import ProductSpec, ShapeRange, parse_spec

from .test_dispatch import RUNTIME

SPEC = """\
name = "mini"

[product.linear]
gemm = "C[m, n] = A[m, k] * B[n, k]"
dtype = "bf16"
shapes = ["24x2048x512", "1..256x2048x512"]
"""
ASK = """
extern "C" int ask(int M)
{
    const bool none[KERNELS] = {};
    return nearest(M, 2048, 512, none);
}
"""
H200 = gpu_named("H200")
FAST, SLOW, PICKY = (TimedKernel(name, ()) for name in ("fast", "slow", "picky"))


def seconds(kernel: TimedKernel, shape: tuple[int, ...]) -> float:
    """``fast`` is the better one up to 100 rows, and ``picky`` takes even ones alone."""
    rows, *_ = shape
    if kernel is PICKY:
        return inf if rows % 2 else 1.0
    return (1.0 + rows / 100) if kernel is FAST else 1.995


@cache
def product() -> ProductSpec:
    return parse_spec(SPEC, "mini.toml").products[0]


@cache
def table() -> tuple[Table, KernelTimes]:
    times = KernelTimes(product(), H200)
    return table_of(product(), H200, times), times


def nearest(entries: list[TableEntry] | tuple[TableEntry, ...], shape: tuple[int, ...]) -> int:
    return min(entries, key=lambda one: distance(one.shape, shape)).kernel


def test_a_grid_has_both_ends_and_stays_within_its_size() -> None:
    rows = [m for m, *_ in grid_of(ShapeRange((1, 64, 64), (4096, 64, 64)), 4, 400)]
    assert rows[0] == 1 and rows[-1] == 4096 and rows == sorted(set(rows)) and len(rows) > 40
    grid = grid_of(ShapeRange((1, 100, 64), (4096, 4100, 8192)), 24, MOST_LOOKED_AT)
    assert 200 < len(grid) <= MOST_LOOKED_AT
    columns = {n for _, n, _ in grid}
    assert {100, 4100} <= columns and all(n % 8 == 0 for n in columns - {100, 4100})
    assert grid_of(ShapeRange((3, 5, 7), (3, 5, 7)), 24, 400) == [(3, 5, 7)]


def test_a_thinned_table_chooses_as_well_as_the_grid() -> None:
    grid = [(rows, 8, 8) for rows in range(1, 300)]
    entries = thinned({(150, 8, 8): 0}, grid, [FAST, SLOW], seconds)
    assert TableEntry((150, 8, 8), 0) in entries and len(entries) < 40
    for shape in grid:
        if shape != (150, 8, 8):
            found = seconds((FAST, SLOW)[nearest(entries, shape)], shape)
            assert found <= min(seconds(FAST, shape), seconds(SLOW, shape)) * (1 + CLOSE)
    assert entries == sorted(entries, key=lambda entry: entry.shape)


def test_a_kernel_that_refuses_a_shape_is_not_launched_there() -> None:
    grid = [(rows, 8, 8) for rows in range(1, 20)]
    entries = thinned({}, grid, [PICKY, SLOW], seconds)
    assert all(nearest(entries, shape) == shape[0] % 2 for shape in grid)


def test_kernels_are_added_until_the_grid_is_close_to_the_best() -> None:
    grid = [(rows, 8, 8) for rows in (1, 50, 99, 200, 400)]
    assert covering([], [SLOW, FAST], grid, seconds) in ([FAST, SLOW], [SLOW, FAST])
    assert covering([FAST], [SLOW], grid[:3], seconds) == []
    assert covering([FAST], [SLOW], grid, seconds) == [SLOW]


def test_no_more_kernels_are_added_than_a_product_may_have(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch_table, "MOST_KERNELS", 1)
    grid = [(rows, 8, 8) for rows in (1, 200)]
    assert len(covering([], [SLOW, FAST], grid, seconds)) == 1


@pytest.mark.proof
def test_a_measured_time_is_taken_before_an_estimate() -> None:
    found, times = table()
    kernel, shape = found.kernels[0], (128, 2048, 512)
    plain = times.seconds(
        TimedKernel(kernel.text, (KnownTime((64, 2048, 512), 1.0, False),)), shape
    )
    known = (KnownTime(shape, 7.0, True), KnownTime((64, 2048, 512), 1.0, False))
    assert times.seconds(TimedKernel(kernel.text, known), shape) == 7.0 != plain
    assert times.why(TimedKernel(kernel.text, known), shape) == "measured, 7 s"
    slower = (KnownTime((64, 2048, 512), 2.0, False),)
    ratio = times.seconds(TimedKernel(kernel.text, slower), shape) / plain
    assert 1 < ratio < 2, "what is known of a near shape counts less than there"


def test_a_kernel_that_refuses_rows_that_are_not_aligned_takes_forever() -> None:
    found, times = table()
    assert times.seconds(found.kernels[0], (128, 2047, 511)) == inf


def test_a_range_gets_kernels_and_the_table_names_each() -> None:
    found, times = table()
    assert {entry.kernel for entry in found.entries} == set(range(len(found.kernels)))
    assert 2 <= len(found.kernels) <= dispatch_table.MOST_KERNELS + 1
    own = next(entry for entry in found.entries if entry.shape == (24, 2048, 512))
    assert any(time.shape == own.shape for time in found.kernels[own.kernel].known)
    for rows in range(1, 257, 5):
        shape = (rows, 2048, 512)
        each = [times.seconds(kernel, shape) for kernel in found.kernels]
        assert each[nearest(found.entries, shape)] <= 1.1 * min(each)


@pytest.mark.skipif(not shutil.which("g++"), reason="there is no g++")
def test_the_emitted_dispatcher_takes_the_same_kernels(tmp_path: Path) -> None:
    spec = parse_spec(SPEC, "mini.toml")
    files = files_of(spec, list(kernels_of(spec)))
    (tmp_path / "linear.cpp").write_text(f"{files['linear.cu']}\n{ASK}")
    (tmp_path / "mini.h").write_text(files["mini.h"])
    (tmp_path / "cuda_runtime_api.h").write_text(RUNTIME)
    command = ["g++", "-std=c++17", "-shared", "-fPIC", "-I.", "linear.cpp", "-o", "linear.so"]
    subprocess.run(command, cwd=tmp_path, check=True)
    emitted = ctypes.CDLL(str(tmp_path / "linear.so"), mode=getattr(ctypes, "RTLD_LAZY", 1))
    found, _ = table()
    for rows in (*range(1, 300), 4096):
        assert emitted.ask(rows) == nearest(found.entries, (rows, 2048, 512))
