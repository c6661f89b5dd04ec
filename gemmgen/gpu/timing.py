"""Timing on a GPU: interleaved candidates, medians, and a tie if the difference is noise.

Clocks and temperature drift within a run, so candidates are interleaved, in an order that is
reversed every other round; a ratio of their medians is reproducible, an absolute time is not.  The
L2 cache is warm: each candidate uses the same memory again.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any, Literal

from gemmgen.base.record import record
from gemmgen.gpu.device import Cupy, cupy

NOISE = 0.01  # differences under 1% are ties
_SPAN = 5.0  # milliseconds between two events, at least: their resolution is 0.5 us
_MOST = 200  # launches between two events
_TIMES = 3  # launches of a rough timing


@record
class Timing:
    """Milliseconds of one launch: median and quartiles of samples, each a mean of ``launches``."""

    median: float
    lower: float
    upper: float
    samples: tuple[float, ...]
    launches: int

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
    span: float = _SPAN,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Timing]:
    """Times ``candidates``, each of which launches once on CuPy's current stream.

    ``warmup`` seconds are spent on all candidates in turn, before the first of ``rounds``.  A short
    kernel is launched many times between two events, for ``span`` milliseconds, from a CUDA graph
    if ``graph`` (candidates that can't be captured, because they synchronize or allocate, need
    ``graph=False``).  The results of the last launch stay in the outputs, for the caller to check.
    """
    cp = cupy()
    cp.cuda.runtime.deviceSynchronize()
    with cp.cuda.Stream(non_blocking=True) as stream:
        batches = _batches(cp, candidates, stream, warmup, graph, span)
        samples: dict[str, list[float]] = {name: [] for name in candidates}
        names = list(candidates)
        for turn in range(rounds):
            for name in names if turn % 2 == 0 else reversed(names):
                run, launches = batches[name]
                samples[name].append(_elapsed(cp, run) / launches)
            if progress is not None:
                progress(turn + 1, rounds)
        stream.synchronize()
    return {name: summarize(found, batches[name][1]) for name, found in samples.items()}


def summarize(samples: list[float], launches: int = 1) -> Timing:
    """``samples`` in milliseconds as a ``Timing``."""
    if len(samples) == 1:
        return Timing(samples[0], samples[0], samples[0], tuple(samples), launches)
    lower, median, upper = statistics.quantiles(samples, n=4, method="inclusive")
    return Timing(median, lower, upper, tuple(samples), launches)


def rough_time(launch: Callable[[], None]) -> float:
    """A rough time of a launch in milliseconds, after a first one, which loads the module.

    The minimum of some: a hiccup of the driver takes two milliseconds, and must not look like a
    slow kernel.
    """
    launch()
    return min(_elapsed(cupy(), launch) for _ in range(_TIMES))


def _batches(
    cp: Cupy,
    candidates: Mapping[str, Callable[[], None]],
    stream: Any,
    warmup: float,
    graph: bool,
    span: float,
) -> dict[str, tuple[Callable[[], None], int]]:
    """For each candidate what is run between two events, and how many launches that is.

    The number is estimated from warm launches; the warm-up continues with the batches.
    """
    batches: dict[str, tuple[Callable[[], None], int]] = {}
    for name, candidate in candidates.items():
        launches = max(1, min(_MOST, math.ceil(span / max(rough_time(candidate), 1e-3))))
        if launches > 1 and graph:
            batches[name] = _captured(candidate, launches, stream), launches
        else:
            batches[name] = _repeated(candidate, launches), launches
    until = time.monotonic() + warmup
    while True:
        for run, _ in batches.values():
            run()
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
