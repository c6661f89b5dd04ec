"""What measured times depend on besides the GPU: its clock, its driver, CUDA and cuBLAS."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import fields
from typing import Any

from gemmgen.base.errors import CannotCheck
from gemmgen.base.record import record
from gemmgen.gpu import cublas, nvml
from gemmgen.gpu.device import cupy


@record
class Setup:
    """``clock``: of the multiprocessors in MHz, right after the timed launches; None, and empty
    versions, where they could not be found out."""

    clock: int | None = None
    driver: str = ""
    cuda: str = ""
    cublas: str = ""


def setup(device: int) -> Setup:
    """The clock and the versions of this moment, on ``device``."""
    driver, clock = _of_driver(device)
    runtime = cublas_version = ""
    with suppress(AttributeError, RuntimeError):
        runtime = cuda_version(int(cupy().cuda.runtime.runtimeGetVersion()))
    with suppress(CannotCheck, AttributeError, RuntimeError):
        cublas_version = library_version(cublas.version())
    return Setup(clock, driver, runtime, cublas_version)


def cuda_version(number: int) -> str:
    """13000 is CUDA 13.0, 12080 is 12.8."""
    return f"{number // 1000}.{number % 1000 // 10}"


def library_version(number: int) -> str:
    """130101 is cuBLAS 13.1.1 (since version 11)."""
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"


def from_json(row: Mapping[str, object]) -> Setup:
    """The setup of a row of ``bench --json`` or ``ladder --json``; older rows have none."""
    known: dict[str, Any] = {x.name: row[x.name] for x in fields(Setup) if row.get(x.name)}
    return Setup(**known)


def described(setups: Iterable[Setup]) -> str:
    """``SM clock 1755-1980 MHz, driver 580.95.05, CUDA 13.0, cuBLAS 13.1.0``: of rows measured
    together; what no row knows is left out."""
    found = tuple(setups)

    def of(name: str) -> list[str]:
        return [
            str(value) for value in sorted({getattr(each, name) for each in found} - {None, ""})
        ]

    clocks = of("clock")
    parts = [f"SM clock {'-'.join(dict.fromkeys((clocks[0], clocks[-1])))} MHz"] if clocks else []
    for name in ("driver", "CUDA", "cuBLAS"):
        if versions := of(name.lower()):
            parts.append(f"{name} {' and '.join(versions)}")
    return ", ".join(parts)


def _of_driver(device: int) -> tuple[str, int | None]:
    """The driver's version and the clock."""
    with nvml.meter(device) as meter:
        return ("", None) if meter is None else (meter.driver(), meter.clock())
