"""Tasks of a Dask cluster: how they are submitted, and what its workers run.

Dask repeats a task whose worker ended, as often as its scheduler allows, and any task that waited
there counts as a cause.  So each task writes to the scheduler that it begins, before it does: then
it is known which one a worker ran when it ended, and no task is begun a third time.

Dask is imported here alone.
"""

from __future__ import annotations

import importlib
import logging
import pickle
import queue
import threading
import time
import uuid
from collections.abc import Callable, Generator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any

from gemmgen.base.cluster_tasks import RUNS, Answered, Began, Ended, TaskEvent
from gemmgen.base.errors import CannotCheck, UsageError
from gemmgen.base.installation import sources
from gemmgen.base.installing import install
from gemmgen.base.record import record

FRESH = 1.0
"""Seconds for which the list of workers is used again."""
GATHER, RESTART = 5.0, 30.0
"""Timeouts in seconds: for a value to be sent, and for a worker to be restarted."""
OVER = "over"
"""The key of a run that has ended: what still waits on a worker does not begin."""
GPU = "GPU"
"""The resource of workers that may launch kernels: dask worker ADDRESS --resources GPU=1."""
_one_at_a_time = threading.Lock()
"""On a worker with several threads: a task is alone in its process, and so the cause of its end."""


@cache
def module(name: str = "distributed") -> Any:
    """A package of Dask; raises ``UsageError`` if it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise UsageError(
            f"a cluster needs Dask, which is not installed: {install('cluster')}"
        ) from None


@contextmanager
def quiet() -> Generator[None]:
    """Dask's own reports of workers that end are not printed: each is an outcome here."""
    log = logging.getLogger("distributed")
    before = log.level
    log.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        log.setLevel(before)


class DaskService:
    """``TaskService`` by a Dask client; its tasks share a topic of events."""

    def __init__(
        self,
        client: Any,
        address: str,
        workers: Callable[[], Mapping[str, object]],
        gpu: bool,
    ):
        self._client, self._address, self._list, self._gpu = client, address, workers, gpu
        self._run = f"gemmgen-{uuid.uuid4().hex}"
        self._arrived: queue.Queue[TaskEvent | tuple[int, Any]] = queue.Queue()
        self._futures: dict[int, Any] = {}
        self._restarts: list[threading.Thread] = []
        self._known: tuple[float, Set[str]] = (-FRESH, frozenset())
        client.subscribe_topic(self._run, self._began)

    def workers(self) -> Set[str]:
        read, found = self._known
        if time.monotonic() - read > FRESH:
            with _lost_connection(self._address):
                found = frozenset(self._list())
            self._known = time.monotonic(), found
        return found

    def submit(self, number: int, do: Callable[[], object]) -> None:
        with _lost_connection(self._address):
            future = self._client.submit(
                *(_serve, self._run, number, sources(), pickle.dumps(do)),
                key=f"{self._run}-{number}-{uuid.uuid4().hex}",
                pure=False,
                resources={GPU: 1} if self._gpu else None,
            )
        self._futures[number] = future
        self._wait_for(number, future)

    def events(self, seconds: float) -> Sequence[TaskEvent]:
        found: list[TaskEvent] = []
        with suppress(queue.Empty):
            while True:
                one = self._arrived.get(seconds > 0 and not found, seconds or None)
                event = self._read(*one) if isinstance(one, tuple) else one
                if event is not None:
                    found.append(event)
        return found

    def cancel(self, number: int) -> None:
        future = self._futures.pop(number, None)
        if future is not None:
            with suppress(Exception):  # the cluster may be lost
                future.cancel()

    def stop(self, numbers: Sequence[int]) -> Sequence[str]:
        running: list[str] = []
        with suppress(Exception):  # the cluster may be lost
            self._client.set_metadata([self._run, OVER], True)
            running = [runs[-1] for number in numbers if (runs := self._runs(number))]
        for number in numbers:
            self.cancel(number)
        return running

    def restart(self, worker: str) -> None:
        thread = threading.Thread(target=self._restarted, args=(worker,), daemon=True)
        self._restarts.append(thread)
        thread.start()

    def close(self) -> None:
        """Waits for the restarts, and ends the topic."""
        for thread in self._restarts:
            thread.join(RESTART)
        with suppress(Exception):  # the cluster may be lost
            self._client.unsubscribe_topic(self._run)
            self._client.set_metadata([self._run], {OVER: True})

    def _restarted(self, worker: str) -> None:
        with suppress(Exception):  # it may have ended meanwhile
            self._client.restart_workers([worker], timeout=RESTART, raise_for_error=False)

    def _began(self, event: tuple[float, Mapping[str, Any]]) -> None:
        """Called by the client, in its own thread."""
        _, message = event
        self._arrived.put(Began(message["number"], message["worker"]))

    def _wait_for(self, number: int, future: Any) -> None:
        def done(_: object) -> None:
            self._arrived.put((number, future))

        future.add_done_callback(done)

    def _read(self, number: int, future: Any) -> TaskEvent | None:
        """The event of a future that is done."""
        if self._futures.get(number) is not future:  # it was cancelled
            return None
        with _lost_connection(self._address):
            event = self._event(number, future)
        if event is None:
            self._wait_for(number, future)
        else:
            del self._futures[number]
            future.release()
        return event

    def _event(self, number: int, future: Any) -> TaskEvent | None:
        """None if its worker ended before it sent the value: then it is begun again."""
        match future.status:
            case "error":
                error = future.exception(timeout=GATHER)
                return self._raised(number, error)
            case "finished":
                try:
                    value = future.result(timeout=GATHER)
                except TimeoutError:
                    return None
                if isinstance(value, _OtherSources):
                    raise UsageError(
                        f"--scheduler {self._address}: {value.worker} has other sources of gemmgen "
                        "than are installed here; install the same on all"
                    )
                if isinstance(value, _BegunOften):
                    return Ended(number, value.runs)
                return Answered(number, value)
            case "cancelled":
                raise OSError("the scheduler has ended")
            case _:
                return None

    def _runs(self, number: int) -> tuple[str, ...]:
        """The workers that have begun a task and not answered."""
        return tuple(self._client.get_metadata([self._run, str(number)], []))

    def _raised(self, number: int, error: Exception) -> TaskEvent:
        if isinstance(error, module().KilledWorker):
            return Ended(number, self._runs(number))
        if isinstance(error, ImportError) and (error.name or "").startswith("gemmgen"):
            raise UsageError(
                f"--scheduler {self._address}: a worker can't import gemmgen, which must be "
                f"installed on all: {error}"
            )
        return Answered(number, error=error)


@contextmanager
def _lost_connection(address: str) -> Generator[None]:
    """Errors of the network in the context are ``CannotCheck``."""
    try:
        yield
    except OSError as wrong:
        raise CannotCheck(f"the connection to {address} is lost: {wrong}") from None


# On a worker.


@record
class _BegunOften:
    """The answer of a task that was begun ``RUNS`` times by workers that ended."""

    runs: tuple[str, ...]


@record
class _OtherSources:
    """The answer of a worker on which another gemmgen is installed."""

    worker: str


def _serve(run: str, number: int, state: str, pickled: bytes) -> object:
    """Calls what is ``pickled``, after the scheduler knows that the ``number``-th task of ``run``
    begins; ``state``: the client's sources."""
    distributed = module()
    with _one_at_a_time:
        client, worker = distributed.get_client(), distributed.get_worker().address
        if state != sources():
            return _OtherSources(worker)
        key = [run, str(number)]
        before: list[str] = list(client.get_metadata(key, []))
        if len(before) >= RUNS:
            return _BegunOften(tuple(before))
        client.set_metadata(key, [*before, worker])
        if client.get_metadata([run, OVER], False):  # asked after the client can see the line above
            return None
        client.log_event(run, {"number": number, "worker": worker})
        try:
            return pickle.loads(pickled)()
        finally:
            client.set_metadata(key, [])
