"""Results for tests, which no GPU measured."""

from __future__ import annotations

from dataclasses import replace

from gemmgen.explore.results.measured_result import MachineInfo, MeasuredResult

H200 = MachineInfo("NVIDIA H200", "sm_90", "580.159.04", "13.0")
TEXT = "dtype A=f16 B=f16 C=f16\ntile m={0} n={0} k=16\ncache_shared A B\ntensor_core via=mma\n"
SHAPE = (2048, 1024, 512)


def result(
    size: int = 64,
    us: float = 20.0,
    shape: tuple[int, ...] = SHAPE,
    *,
    date: str = "2026-11-20T12:00:00.000+00:00",
    machine: MachineInfo = H200,
    text: str = TEXT,
) -> MeasuredResult:
    """A schedule with tiles of ``size`` rows and columns that took this many microseconds."""
    found = MeasuredResult.of(text.format(size), shape, machine, us * 1e-6, vendor=19e-6)
    return replace(found, date=date)
