"""A whole search as one call, for ``gemmgen tune`` and ``gemmgen.tune``."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from gemmgen.base.errors import UsageError
from gemmgen.explore.tune.cluster_runner import ClusterRunner, GpuWorkers
from gemmgen.explore.tune.legal_points import CHUNK, Shape, census
from gemmgen.explore.tune.search import SearchProgress
from gemmgen.explore.tune.space import SearchSpace
from gemmgen.explore.tune.trials import Log
from gemmgen.explore.tune.tuner import Task, Tuned, about, tune
from gemmgen.explore.tune.workers import Workers
from gemmgen.gpu import device

LARGE = 4096
"""Points from which on the census may take a minute: the GPU is required before it."""


def require_gpu(space: SearchSpace) -> None:
    """Raises ``CannotCheck`` if counting the points would take long, and no GPU is here."""
    if space.size > LARGE:
        device.cupy()


def task_of(
    space: SearchSpace,
    shapes: Sequence[Shape],
    workers: Workers,
    *,
    seconds: float,
    seed: int,
    tick: Callable[[int, int], None] = lambda done, total: None,
) -> Task:
    """Counts the legal points, for a search that ends ``seconds`` after this call began.

    Its batches are large enough to keep every process busy.  Raises ``UsageError`` if no point is
    legal.
    """
    begin = time.monotonic()
    found = census(space, shapes, workers.pool if space.size > CHUNK else None, tick)
    if not found.legal:
        reason, times = found.refused.most_common(1)[0]
        raise UsageError(f"no point of {space.source.name} is legal; of {times:,}: {reason}")
    batch = max(16, 2 * workers.jobs)
    return Task(space, found, tuple(shapes), seed, begin, begin + seconds, batch)


def search(
    task: Task,
    workers: Workers,
    trials: Path | None = None,
    *,
    resume: bool = False,
    gpus: GpuWorkers | None = None,
    watch: Callable[[SearchProgress], None] = lambda _: None,
) -> Tuned:
    """Compiles, checks and times points of ``task`` until its end, and logs trials to ``trials``;
    on the workers ``gpus``, if there are any.

    Raises ``CannotCheck`` without a GPU, CuPy, a compiler or Optuna.
    """
    from gemmgen.explore.tune.cubins import CompilingBuilder
    from gemmgen.explore.tune.gpu_measuring import GpuRunner
    from gemmgen.explore.tune.remote import RemoteRunner
    from gemmgen.explore.tune.sampler import require_optuna
    from gemmgen.gpu.compiler import compiler

    require_optuna()
    make = partial(GpuRunner, task.census.legal[0].text, task.shapes)
    runner = RemoteRunner(make) if gpus is None else ClusterRunner(gpus, make)
    log: Log | None = None
    try:
        device_info = runner.device_info
        compiler()  # raises CannotCheck if there is none
        log = Log(trials, about(task, device_info), resume=resume)
        builder = CompilingBuilder(workers, device_info.arch)
        return tune(task, builder, runner, log, time.monotonic, watch)
    finally:
        runner.end()
        if log is not None:
            log.close()


def run(
    space: SearchSpace,
    shapes: Sequence[Shape],
    *,
    seconds: float,
    jobs: int | None = None,
    seed: int = 0,
    trials: Path | None = None,
    resume: bool = False,
) -> Tuned:
    """Finds the legal points of ``space`` and searches them, for ``seconds`` in all."""
    require_gpu(space)
    with Workers(jobs or os.cpu_count() or 1) as workers:
        task = task_of(space, shapes, workers, seconds=seconds, seed=seed)
        return search(task, workers, trials, resume=resume)
