"""A measured result as a row of the database."""

from __future__ import annotations

import math
from typing import Any

from gemmgen.explore.results.measured_result import (
    ORIGINS,
    MachineInfo,
    MeasuredResult,
    ProblemKey,
)
from gemmgen.ir.launch_shape import Shape

COLUMNS = (
    *("problem", "gpu", "shape", "pitches", "schedule", "arch", "driver", "cuda"),
    *("seconds", "vendor", "date", "origin", "code", "version"),
)


def as_row(result: MeasuredResult) -> tuple[object, ...]:
    problem, machine = result.problem, result.machine
    where = problem.text, machine.gpu, _text(problem.shape), _text(problem.pitches)
    on = machine.arch, machine.driver, machine.cuda
    about = result.date, result.origin, result.code, result.version
    return (*where, result.schedule, *on, result.seconds, result.vendor, *about)


def from_row(row: tuple[Any, ...]) -> MeasuredResult:
    """Raises ``ValueError`` for a row that no version of gemmgen wrote."""
    text, gpu, shape, pitches, schedule, arch, driver, cuda, seconds, vendor, *about = row
    date, origin, code, version = about
    texts = (text, gpu, schedule, arch, driver, cuda, date, code, version)
    steps = shape_of_text(pitches)
    times = [seconds] if vendor is None else [seconds, vendor]
    if (
        not all(isinstance(x, str) for x in texts)
        or not all(isinstance(x, float) and 0 < x < math.inf for x in times)
        or origin not in ORIGINS
        or len(steps) != 3
    ):
        raise ValueError("a row has a value of a wrong type")
    return MeasuredResult(
        ProblemKey(text, shape_of_text(shape), (steps[0], steps[1], steps[2])),
        schedule,
        MachineInfo(gpu, arch, driver, cuda),
        seconds,
        vendor,
        date,
        origin,
        code,
        version,
    )


def shape_of_text(text: str) -> Shape:
    """``2048x2304x768``."""
    return tuple(int(x) for x in text.split("x"))


def _text(sizes: tuple[int, ...]) -> str:
    return "x".join(map(str, sizes))
