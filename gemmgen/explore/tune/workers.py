"""A pool of processes that survives the crash of one."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Generic, ParamSpec, TypeVar

from gemmgen.base import temporary
from gemmgen.base.processes import interrupts_held, kill, serve_last

T = TypeVar("T")
P = ParamSpec("P")


@dataclass
class Job(Generic[T]):
    """A submitted call, its future, and the pool that it was submitted to."""

    start: Callable[[], Future[T]]
    future: Future[T]
    pool: ProcessPoolExecutor


class Workers:
    """``jobs`` processes; if one is killed, the jobs of the others are repeated.

    A pool that lost a process (no memory left, say) loses all of its running jobs.  Each of them
    is repeated alone, which finds the one that ends its process.
    """

    _folder: TemporaryDirectory[str] | None = None

    def __init__(self, jobs: int):
        self.jobs = jobs
        self.pool = self._new()

    def submit(self, do: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Job[T]:
        def start() -> Future[T]:
            with interrupts_held():
                return self.pool.submit(do, *args, **kwargs)

        return Job(start, self._started(start), self.pool)

    def result(self, job: Job[T]) -> T | None:
        """Waits for the job's result; None if the job ends its process."""
        try:
            return job.future.result()
        except BrokenExecutor:
            if job.pool is self.pool:
                self._replace()
        try:
            return self._started(job.start).result()
        except BrokenExecutor:
            self._replace()
            return None

    @property
    def folder(self) -> Path:
        """Where jobs write files: a temporary folder that is removed after the processes end."""
        if self._folder is None:
            self._folder = temporary.folder("tune-")
        return Path(self._folder.name)

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        kill(self.pool)
        if self._folder is not None:
            self._folder.cleanup()

    def _started(self, start: Callable[[], Future[T]]) -> Future[T]:
        try:
            return start()
        except BrokenExecutor:  # those that wait for the job that broke it get the error
            self._replace()
            return start()

    def _replace(self) -> None:
        self.pool.shutdown(wait=False, cancel_futures=True)
        self.pool = self._new()

    def _new(self) -> ProcessPoolExecutor:
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(self.jobs, context, initializer=serve_last)
