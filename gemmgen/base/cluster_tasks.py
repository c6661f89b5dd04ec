"""Tasks on the workers of a cluster: each has a value, or is lost alone.

A worker may be killed, run out of memory, or hang.  A task whose worker ended is begun once more on
another worker.  A task that takes longer than its limit is lost, and its worker is restarted.  The
other tasks of that worker are not affected: a worker runs one task at a time, and those that wait
there go to other workers.

This file has the rules; ``dask_client`` has the cluster.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from gemmgen.base.errors import CannotCheck, GemmgenError
from gemmgen.base.record import record

T = TypeVar("T")

RUNS = 2
"""A task is begun at most this many times: again only if its worker ended."""
SUBMISSIONS = 4
"""A task is submitted at most this many times: again only if no worker had begun it when several
ended."""
AHEAD = 2
"""Tasks in flight for each worker, so that none waits for the next task."""
POLL = 0.25
"""Seconds between two looks at the limits."""
PATIENCE = 60.0
"""Seconds without any worker after which the cluster is given up: a restart takes a few."""


@dataclass(frozen=True)
class ClusterTask(Generic[T]):
    """``do``, which another process can unpickle, under a ``name`` for reports.

    It is lost after ``seconds`` on a worker, where the time in a queue does not count.  ``spoils``:
    any exception leaves its process unusable (errors of CUDA do), so that its worker is restarted.
    """

    name: str
    do: Callable[[], T]
    seconds: float
    spoils: bool = False


@dataclass(frozen=True)
class TaskOutcome(Generic[T]):
    """The ``number``-th task's value, or ``error``, which it raised, or why it is ``lost``."""

    number: int
    task: ClusterTask[T]
    value: T | None = None
    error: GemmgenError | None = None
    lost: str = ""


class TasksInOrder(Generic[T]):
    """Outcomes by number, whatever the order of their arrival: reports are then the same."""

    def __init__(self) -> None:
        self._waiting: dict[int, TaskOutcome[T]] = {}
        self._next = 0

    def after(self, outcome: TaskOutcome[T]) -> Iterator[TaskOutcome[T]]:
        """The outcomes whose turn it is once ``outcome`` has arrived."""
        self._waiting[outcome.number] = outcome
        while self._next in self._waiting:
            self._next += 1
            yield self._waiting.pop(self._next - 1)

    def rest(self) -> list[TaskOutcome[T]]:
        """Those that arrived before others, which a run that ended early does not have."""
        return [self._waiting[number] for number in sorted(self._waiting)]


@record
class Began:
    """A worker has begun a task."""

    number: int
    worker: str


@record
class Answered:
    """A task returned a value, or raised an error."""

    number: int
    value: Any = None
    error: Exception | None = None


@record
class Ended:
    """Workers ended and a task is not repeated; ``runs``: those that had begun it."""

    number: int
    runs: tuple[str, ...]


TaskEvent = Began | Answered | Ended


class TaskService(Protocol):
    """A cluster that runs tasks; numbers identify them."""

    def workers(self) -> Set[str]:
        """The addresses of the workers that there are now and that take these tasks."""
        ...

    def submit(self, number: int, do: Callable[[], object]) -> None: ...

    def events(self, seconds: float) -> Sequence[TaskEvent]:
        """The next events, none if there are none within ``seconds``; raises ``CannotCheck`` if
        the cluster is lost."""
        ...

    def cancel(self, number: int) -> None: ...

    def stop(self, numbers: Sequence[int]) -> Sequence[str]:
        """Cancels all of ``numbers``, begins no other task, and returns the workers that run one of
        them, known here or not."""
        ...

    def restart(self, worker: str) -> None:
        """Ends the worker's process, whatever it is doing; another takes its place."""
        ...


@dataclass
class _InFlight(Generic[T]):
    """A submitted task; its worker and the time of its latest beginning."""

    task: ClusterTask[T]
    submissions: int = 1
    worker: str = ""
    begun: float = 0.0


class TaskRun(Generic[T]):
    """Runs ``tasks``, which are drawn as the cluster needs them."""

    def __init__(
        self,
        service: TaskService,
        tasks: Iterable[ClusterTask[T]],
        clock: Callable[[], float] = time.monotonic,
    ):
        self._service, self._tasks, self._clock = service, enumerate(tasks), clock
        self._running: dict[int, _InFlight[T]] = {}
        self._more = True
        self._seen = clock()

    def outcomes(self) -> Generator[TaskOutcome[T]]:
        """The tasks' outcomes in the order of their arrival.

        Raises ``CannotCheck`` if the cluster is lost.  If it is closed early, what runs is
        cancelled and its workers are restarted.
        """
        try:
            while self._more or self._running:
                most = AHEAD * max(1, len(self._service.workers()))
                room = self._more and len(self._running) < most
                if room:
                    self._submit_next()
                # Drawing a task may take a while: events are taken between two of them.
                for event in self._service.events(0.0 if room else POLL):
                    outcome = self._after(event)
                    if outcome is not None:
                        yield outcome
                yield from self._late()
                self._check_workers()
        finally:
            self._end_all()

    def _submit_next(self) -> None:
        found = next(self._tasks, None)
        if found is None:
            self._more = False
            return
        number, task = found
        self._running[number] = _InFlight(task)
        self._service.submit(number, task.do)

    def _after(self, event: TaskEvent) -> TaskOutcome[T] | None:
        """The outcome that an event decides."""
        one = self._running.get(event.number)
        if one is None:  # it is lost already
            return None
        match event:
            case Began(_, worker):
                one.worker, one.begun = worker, self._clock()
                return None
            case Ended(number, runs) if len(runs) < RUNS and one.submissions < SUBMISSIONS:
                one.submissions += 1
                one.worker = ""
                self._service.submit(number, one.task.do)
                return None
            case Ended(number, runs):
                del self._running[number]
                why = f"its workers ended: {', '.join(runs)}" if runs else "its workers ended"
                return TaskOutcome(number, one.task, lost=why)
            case Answered(number, value, error):
                del self._running[number]
                if error is None:
                    return TaskOutcome(number, one.task, value)
                if isinstance(error, GemmgenError):
                    return TaskOutcome(number, one.task, error=error)
                if one.task.spoils and one.worker:
                    self._service.restart(one.worker)
                return TaskOutcome(number, one.task, lost=f"{type(error).__name__}: {error}")

    def _late(self) -> list[TaskOutcome[T]]:
        """The tasks that are over their limits, not counting those whose worker ended."""
        now, workers = self._clock(), self._service.workers()
        late = [
            (number, one)
            for number, one in self._running.items()
            if one.worker in workers and now - one.begun > one.task.seconds
        ]
        for number, one in late:
            del self._running[number]
            self._service.cancel(number)
            self._service.restart(one.worker)
        return [
            TaskOutcome(
                number, one.task, lost=f"no answer within {one.task.seconds:.0f} s on {one.worker}"
            )
            for number, one in late
        ]

    def _end_all(self) -> None:
        """Cancels what runs, and ends the processes that run it."""
        if self._running:
            for worker in self._service.stop(list(self._running)):
                self._service.restart(worker)

    def _check_workers(self) -> None:
        now = self._clock()
        if self._service.workers():
            self._seen = now
        elif now - self._seen > PATIENCE:
            raise CannotCheck(f"the cluster has had no worker for {PATIENCE:.0f} s")
