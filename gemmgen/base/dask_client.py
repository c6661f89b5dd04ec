"""A client of a Dask cluster, for ``--scheduler``."""

from __future__ import annotations

import re
import time
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from gemmgen.base.cluster_tasks import ClusterTask, TaskOutcome, TaskRun
from gemmgen.base.dask_tasks import GPU, DaskService, module, quiet
from gemmgen.base.errors import UsageError
from gemmgen.base.source import shown

T = TypeVar("T")

WITHIN = 10.0
"""Seconds for the scheduler to answer, and for a first worker."""
CLOSE = 5.0
"""Seconds for the connection to be closed."""
_ADDRESS = re.compile(r"((tcp|tls|ucx|ucxx|ws|wss)://)?(\[[0-9a-fA-F:.]+\]|[\w.-]+):[0-9]{1,5}")


def check_address(address: str) -> None:
    """Raises ``UsageError`` if ``address`` can't be a scheduler's."""
    if not _ADDRESS.fullmatch(address):
        raise UsageError(
            f"--scheduler: {shown(address)} is not an address; write tcp://host:8786, say"
        )


@contextmanager
def connected(address: str, *, gpu: bool = False, within: float = WITHIN) -> Generator[DaskCluster]:
    """The cluster whose scheduler is at ``address``; ``gpu``: its workers with a GPU alone.

    Raises ``UsageError`` if Dask is not installed, nothing answers ``within`` seconds, or
    a worker is missing or has no nanny.
    """
    check_address(address)
    distributed = module()
    with quiet():
        try:
            client = distributed.Client(
                address, timeout=within, set_as_default=False, name="gemmgen"
            )
        except (OSError, ValueError) as wrong:
            raise UsageError(
                f"--scheduler {address}: no scheduler answers within {within:.0f} s: {wrong}"
            ) from None
        try:
            cluster = DaskCluster(client, address, gpu)
            cluster.check(within)
            yield cluster
        finally:
            client.close(timeout=CLOSE)


class DaskCluster:
    """A connected cluster."""

    def __init__(self, client: Any, address: str, gpu: bool = False):
        self._client, self._address, self._gpu = client, address, gpu

    def check(self, within: float) -> None:
        """Waits for a worker; raises ``UsageError`` if there is none, or if one has no nanny."""
        end = time.monotonic() + within
        while not (workers := self._workers()):
            if time.monotonic() > end:
                what = "worker with a GPU" if self._gpu else "worker"
                more = " --resources GPU=1" if self._gpu else ""
                raise UsageError(
                    f"--scheduler {self._address}: no {what} within {within:.0f} s; start one with "
                    f"dask worker {self._address} --nthreads 1{more}"
                )
            time.sleep(0.1)
        for worker, known in workers.items():
            if not known.get("nanny"):
                raise UsageError(
                    f"--scheduler {self._address}: {worker} has no nanny, which ends it if a task "
                    "hangs: start it without --no-nanny"
                )

    def count(self) -> int:
        """The workers that there are now."""
        return len(self._workers())

    def outcomes(self, tasks: Iterable[ClusterTask[T]]) -> Generator[TaskOutcome[T]]:
        """The outcomes of ``tasks`` in the order of their arrival (``TaskRun.outcomes``)."""
        service = DaskService(self._client, self._address, self._workers, self._gpu)
        try:
            yield from TaskRun(service, tasks).outcomes()
        finally:
            service.close()

    def _workers(self) -> dict[str, Mapping[str, Any]]:
        """By address, what Dask knows of each worker that takes the tasks."""
        every: dict[str, Mapping[str, Any]] = self._client.scheduler_info(n_workers=-1)["workers"]
        return {
            worker: known
            for worker, known in every.items()
            if not self._gpu or known["resources"].get(GPU, 0) >= 1
        }
