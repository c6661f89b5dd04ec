"""Processes that do what they are given, one thing at a time each."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from dataclasses import dataclass
from typing import Generic, ParamSpec, TypeVar

from gemmgen.base.processes import serve_last

T = TypeVar("T")
P = ParamSpec("P")


@dataclass
class Job(Generic[T]):
    """What was asked for, and the answer to come; ``pool`` counts the pools before this one."""

    start: Callable[[], Future[T]]
    future: Future[T]
    pool: int


class Workers:
    """``jobs`` processes; where one is ended from outside, the others' work is done again.

    A pool that lost a process (no memory left, say) is lost with all that it was doing.  Each of
    those jobs is begun anew, alone, so that the one to blame is known.
    """

    def __init__(self, jobs: int):
        self.jobs = jobs
        self._pools = 0
        self._pool = self._new()

    @property
    def pool(self) -> ProcessPoolExecutor:
        return self._pool

    def submit(self, do: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Job[T]:
        def start() -> Future[T]:
            return self._pool.submit(do, *args, **kwargs)

        return Job(start, self._started(start), self._pools)

    def result(self, job: Job[T]) -> T | None:
        """The job's answer, waited for; None where it ends its process."""
        try:
            return job.future.result()
        except BrokenExecutor:
            if job.pool == self._pools:
                self._replace()
        try:
            return self._started(job.start).result()
        except BrokenExecutor:
            self._replace()
            return None

    def end(self) -> None:
        """Ends the processes, whatever they are doing."""
        processes = list(
            (self._pool._processes or {}).values()
        )  # pyright: ignore[reportPrivateUsage]
        self._pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.terminate()

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def _started(self, start: Callable[[], Future[T]]) -> Future[T]:
        try:
            return start()
        except BrokenExecutor:  # what broke it is told to those who wait for it
            self._replace()
            return start()

    def _replace(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._pools += 1
        self._pool = self._new()

    def _new(self) -> ProcessPoolExecutor:
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(self.jobs, context, initializer=serve_last)
