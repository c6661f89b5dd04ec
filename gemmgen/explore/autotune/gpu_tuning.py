"""``tune_shapes`` on the GPU of this machine, with worker processes that compile."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial

from gemmgen.base.errors import UsageError
from gemmgen.explore.autotune.judged_candidates import Judge, JudgingWorkers
from gemmgen.explore.autotune.shape_tuning import Keeper, Lab, Tuning, Watch, tune_shapes
from gemmgen.explore.request import Request
from gemmgen.explore.tune.cluster_runner import ClusterRunner, GpuWorkers
from gemmgen.explore.tune.cubins import CompilingBuilder
from gemmgen.explore.tune.gpu_measuring import GpuRunner
from gemmgen.explore.tune.measuring import DeviceInfo, Runner
from gemmgen.explore.tune.remote import RemoteRunner
from gemmgen.explore.tune.workers import Workers
from gemmgen.gpu.compiler import compiler
from gemmgen.gpu.gpus import Gpu
from gemmgen.ir.decompositions import Fast
from gemmgen.schedule.formatting import format_schedule

FEWEST, MOST = 8, 32
"""Candidates of a batch."""

Requests = Callable[[Gpu], tuple[Request, ...]]
"""The requests for a GPU's figures."""


class GpuLab:
    """The GPU of this machine: ``runner`` measures in one process for all requests; or those of the
    workers ``gpus``."""

    def __init__(self, first: Request, workers: Workers, gpus: GpuWorkers | None = None):
        self._workers = workers
        make = partial(GpuRunner, _problem(first), ())
        self._remote = RemoteRunner(make) if gpus is None else ClusterRunner(gpus, make)
        self._builder: CompilingBuilder | None = None

    @property
    def device_info(self) -> DeviceInfo:
        return self._remote.device_info

    @property
    def batch(self) -> int:
        return min(MOST, max(FEWEST, self._workers.jobs))

    @property
    def builder(self) -> CompilingBuilder:
        if self._builder is None:
            arch = self.device_info.gpu.arch
            self._builder = CompilingBuilder(self._workers, arch)
        return self._builder

    def searched(self) -> None:
        self.builder.cancel()

    def judge(self, request: Request) -> Judge:
        return JudgingWorkers(self._workers, request)

    def runner(self, request: Request) -> Runner:
        self._remote.change(
            partial(GpuRunner, _problem(request), (request.shape,), _strides(request))
        )
        return self._remote

    def end(self) -> None:
        self._remote.end()


def tune_here(
    requests: Requests,
    guess: Gpu,
    keeper_of: Callable[[DeviceInfo], Keeper],
    *,
    budget: float,
    named: bool = False,
    jobs: int | None = None,
    gpus: GpuWorkers | None = None,
    watch: Callable[[Tuning], Watch] = lambda tuning: lambda at, progress: None,
) -> Tuning:
    """Tunes the shapes of ``requests`` for ``budget`` seconds from now on.

    Kernels are compiled here, and measured here or on the workers ``gpus``.

    ``guess``: the GPU that ``requests`` is called for before this one's figures are known; if it is
    ``named`` by the user it must be of this one's architecture, and its figures are used.  After
    Ctrl-C the results so far are returned, ``interrupted``; before the first search it is raised.
    Raises ``CannotCheck`` without a GPU, CuPy or a compiler.
    """
    begin = time.monotonic()
    first = requests(guess)[0]
    with ExitStack() as stack:
        workers = stack.enter_context(Workers(jobs or os.cpu_count() or 1))
        lab = GpuLab(first, workers, gpus)
        stack.callback(lab.end)
        here = lab.device_info
        compiler()  # raises CannotCheck if there is none
        if named and here.gpu.arch != guess.arch:
            raise UsageError(
                f"--gpu {guess.name} is {guess.arch}, and the GPU here, an {here.name}, is "
                f"{here.gpu.arch}: leave --gpu out, or use --show-space"
            )
        tuning = Tuning(here, requests(guess if named else here.gpu))
        run_until(tuning, lab, keeper_of(here), time.monotonic, begin + budget, watch(tuning))
    return tuning


def run_until(
    tuning: Tuning,
    lab: Lab,
    keeper: Keeper,
    clock: Callable[[], float],
    end: float,
    watch: Watch,
) -> None:
    """``tune_shapes``; Ctrl-C ends it with the results so far."""
    try:
        tune_shapes(tuning, lab, keeper, clock, end, watch)
    except KeyboardInterrupt as ended:
        tuning.cause = ended


def _problem(request: Request) -> str:
    """The naive schedule of the problem, whose tensors all candidates take."""
    return format_schedule(request.problem)


def _strides(request: Request) -> dict[str, tuple[int, ...]]:
    """Those of A, B and C if a leading dimension was given."""
    if not request.pitches:
        return {}
    return {request.access[role].tensor: request.strides(role) for role in "abc"}


def requests_of(
    gemm: str,
    shapes: Sequence[tuple[int, ...]],
    dtype: str,
    epilogue: str | None,
    ld: Mapping[str, int] | None,
    gpu: Gpu,
    *,
    fast: Fast,
    same_bits: str | None = None,
) -> tuple[Request, ...]:
    """A request for each shape, each once; raises the errors of ``suggest``."""
    return tuple(
        Request.of(
            gemm,
            shape,
            dtype=dtype,
            epilogue=epilogue,
            gpu=gpu,
            ld=ld,
            fast=fast,
            same_bits=same_bits,
        )
        for shape in dict.fromkeys(shapes)
    )
