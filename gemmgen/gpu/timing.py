"""Timing on a GPU: interleaved candidates, medians, and a tie if the difference is noise.

Clocks and temperature drift within a run, so candidates are interleaved; a ratio of their medians
is reproducible, an absolute time is not.  At its power limit a GPU lowers its clock with a delay of
milliseconds, so that a candidate would run at the clock that the one before it left: each sample
follows ``LEAD`` milliseconds of the same candidate, and the order is redrawn each round, from a
fixed seed.  The L2 cache is warm: each candidate uses the same memory again.
"""

from __future__ import annotations

import math
import random
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from gemmgen.base.record import record
from gemmgen.gpu.device import Cupy, cupy
from gemmgen.gpu.nvml import Meter, PowerReading

NOISE = 0.01  # differences under 1% are ties
LEAD = 15.0
"""Milliseconds of a candidate right before each of its samples."""
SPAN = 20.0
"""Milliseconds of a sample, at least: events have a resolution of 0.5 us."""
SEED = 17
"""Of the orders that rounds are drawn in."""
_GRAPH = 5.0  # milliseconds of launches in a CUDA graph
_MOST = 200  # launches in a CUDA graph
_TIMES = 3  # launches of a rough timing
_READ_AT = 0.8  # of lead and sample together: when power and clock are read
_LONGER = 1.05  # a sample that was too short is taken again, with this many times the launches
_TRIES = 4


@record
class Timing:
    """Milliseconds of one launch: median and quartiles of samples, each a mean of ``launches`` or
    of several times as many.  ``power`` in watts and ``clock`` in MHz are medians of what was read
    while samples ran; None if nothing was."""

    median: float
    lower: float
    upper: float
    samples: tuple[float, ...]
    launches: int
    power: float | None = None
    clock: int | None = None

    @property
    def spread(self) -> float:
        """Interquartile range as a share of the median."""
        return (self.upper - self.lower) / self.median


Verdict = Literal["faster", "slower", "tie"]


def compare(one: Timing, other: Timing) -> Verdict:
    """The verdict on ``one`` against ``other``; differences under 1% are a tie."""
    ratio = other.median / one.median
    if abs(ratio - 1) < NOISE:
        return "tie"
    return "faster" if ratio > 1 else "slower"


def time_interleaved(
    candidates: Mapping[str, Callable[[], None]],
    *,
    warmup: float = 1.0,
    rounds: int = 20,
    graph: bool = True,
    quick: float | None = None,
    lead: float = 0.0,
    meter: Meter | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Timing]:
    """Times ``candidates``, each of which launches once on CuPy's current stream.

    ``warmup`` seconds are spent on all candidates, one after another, before the first of
    ``rounds``.  Each sample takes ``SPAN`` milliseconds between two events, after ``LEAD``
    milliseconds of the same candidate.  ``quick``: a search, which compares many, has about this
    many milliseconds instead, after ``lead`` of them.  A short kernel is launched many times, from
    a CUDA graph if ``graph`` (candidates that can't be captured, because they synchronize or
    allocate, need ``graph=False``).  ``meter`` is read during each sample.  The results of the last
    launch stay in the outputs, for the caller to check.
    """
    cp = cupy()
    cp.cuda.runtime.deviceSynchronize()
    with cp.cuda.Stream(non_blocking=True) as stream:
        batches = _batches(cp, candidates, stream, warmup, graph, quick or _GRAPH)
        before, span = (LEAD, SPAN) if quick is None else (lead, 0.0)
        orders = random.Random(SEED)
        for turn in range(rounds):
            for name in orders.sample(list(candidates), len(candidates)):
                _sample(cp, batches[name], before, span, meter)
            if progress is not None:
                progress(turn + 1, rounds)
        stream.synchronize()
    return {
        name: summarize(batch.samples, batch.launches, batch.readings)
        for name, batch in batches.items()
    }


def summarize(
    samples: list[float], launches: int = 1, readings: list[PowerReading] | None = None
) -> Timing:
    """``samples`` in milliseconds, and what was read meanwhile, as a ``Timing``."""
    watts = [x.power for x in readings or () if x.power is not None]
    clocks = [x.clock for x in readings or () if x.clock is not None]
    power = statistics.median(watts) if watts else None
    clock = statistics.median_low(clocks) if clocks else None
    lower = median = upper = samples[0]
    if len(samples) > 1:
        lower, median, upper = statistics.quantiles(samples, n=4, method="inclusive")
    return Timing(median, lower, upper, tuple(samples), launches, power, clock)


def rough_time(launch: Callable[[], None]) -> float:
    """A rough time of a launch in milliseconds, after a first one, which loads the module.

    The minimum of some: a hiccup of the driver takes two milliseconds, and must not look like a
    slow kernel.
    """
    launch()
    return min(_elapsed(cupy(), launch) for _ in range(_TIMES))


@dataclass
class _Batch:
    """What is run at once: a number of launches, and about how many milliseconds they take."""

    run: Callable[[], None]
    launches: int
    ms: float
    samples: list[float] = field(default_factory=list[float])
    readings: list[PowerReading] = field(default_factory=list[PowerReading])

    def times(self, least: float) -> int:
        """How often it runs in ``least`` milliseconds, or a little more."""
        return math.ceil(least / max(self.ms, 1e-3))


def _sample(cp: Cupy, batch: _Batch, lead: float, span: float, meter: Meter | None) -> None:
    """Adds a sample to those of ``batch``, and a reading."""
    tries = _TRIES
    while True:
        times, tries = max(1, batch.times(span)), tries - 1
        elapsed, reading = _led(cp, batch, batch.times(lead), times, meter)
        batch.ms = elapsed / times
        if elapsed >= span or not tries:
            break
        batch.ms /= _LONGER
    batch.samples.append(elapsed / times / batch.launches)
    if reading is not None:
        batch.readings.append(reading)


def _led(
    cp: Cupy, batch: _Batch, before: int, times: int, meter: Meter | None
) -> tuple[float, PowerReading | None]:
    """Milliseconds of ``times`` runs, right after others ``before`` them, and what was read."""
    begin = time.monotonic()
    for _ in range(before):
        batch.run()
    start, end = cp.cuda.Event(), cp.cuda.Event()
    start.record()
    for _ in range(times):
        batch.run()
    end.record()
    reading = None
    if meter is not None:
        due = begin + 1e-3 * _READ_AT * (before + times) * batch.ms
        time.sleep(max(0.0, due - time.monotonic()))
        reading = meter.read()
    end.synchronize()
    return cp.cuda.get_elapsed_time(start, end), reading


def _batches(
    cp: Cupy,
    candidates: Mapping[str, Callable[[], None]],
    stream: Any,
    warmup: float,
    graph: bool,
    least: float,
) -> dict[str, _Batch]:
    """For each candidate launches of about ``least`` milliseconds.

    Their number is estimated from warm launches; the warm-up continues with the batches.
    """
    batches: dict[str, _Batch] = {}
    for name, candidate in candidates.items():
        rough = max(rough_time(candidate), 1e-3)
        launches = max(1, min(_MOST, math.ceil(least / rough)))
        if launches > 1 and graph:
            run = _captured(candidate, launches, stream)
        else:
            run = _repeated(candidate, launches)
        batches[name] = _Batch(run, launches, launches * rough)
    until = time.monotonic() + warmup
    while True:
        for batch in batches.values():
            batch.ms = _elapsed(cp, batch.run)
        stream.synchronize()
        if time.monotonic() >= until:
            return batches


def _captured(candidate: Callable[[], None], launches: int, stream: Any) -> Callable[[], None]:
    stream.begin_capture()
    try:
        for _ in range(launches):
            candidate()
    finally:
        found = stream.end_capture()
    return lambda: found.launch(stream)


def _repeated(candidate: Callable[[], None], launches: int) -> Callable[[], None]:
    def run() -> None:
        for _ in range(launches):
            candidate()

    return run


def _elapsed(cp: Cupy, run: Callable[[], None]) -> float:
    """Milliseconds between two events on the current stream around ``run``."""
    start, end = cp.cuda.Event(), cp.cuda.Event()
    start.record()
    run()
    end.record()
    end.synchronize()
    return cp.cuda.get_elapsed_time(start, end)
