"""A Dask cluster of this machine's CPUs, and tasks that end or block the worker that runs them."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gemmgen.base.errors import UsageError

# Workers import this file.


@contextmanager
def local_workers(folder: Path, count: int = 2, **options: Any) -> Iterator[str]:
    """The address of a scheduler with ``count`` workers of one thread; files are in ``folder``."""
    import dask
    from distributed import LocalCluster

    options = {"threads_per_worker": 1, **options}
    # Else a worker that is killed again after this time is not replaced.
    patient = dask.config.set({"distributed.deploy.lost-worker-timeout": "1 day"})
    with (
        patient,
        LocalCluster(
            n_workers=count,
            dashboard_address=":0",
            worker_dashboard_address=None,
            silence_logs=60,
            local_directory=str(folder),
            **options,
        ) as cluster,
    ):
        yield cluster.scheduler_address


def wait_for_workers(address: str, count: int) -> None:
    from distributed import Client

    with Client(address, set_as_default=False) as client:
        client.wait_for_workers(count, timeout=60)


def double(number: int) -> int:
    return 2 * number


def process(note: Path) -> int:
    """Notes that it ran; the process that runs it."""
    with note.open("a") as file:
        file.write(f"{os.getpid()}\n")
    return os.getpid()


def killed(note: Path) -> None:
    """Its worker is killed, as by a kernel that takes the machine's memory."""
    process(note)
    os.kill(os.getpid(), signal.SIGKILL)


def killed_once(note: Path) -> str:
    if note.exists():
        return "survived"
    killed(note)
    return "never reached"


def hangs(note: Path) -> None:
    process(note)
    time.sleep(600)


def holds_the_interpreter(note: Path) -> None:
    """Hangs in C code, like a kernel's launch that never returns: no other thread runs."""
    process(note)
    import re

    re.match("(a*)*b", "a" * 60)


def raises() -> None:
    raise RuntimeError("cudaErrorIllegalAddress")


def refuses() -> None:
    raise UsageError("no such thing")


def not_alone(seconds: float) -> bool:
    """Whether another task ran in this process at the same time."""
    found = _busy.locked()
    with _busy:
        time.sleep(seconds)
    return found


_busy = threading.Lock()
