"""Worker processes that end with their parent."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Generator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager


def end_with_parent() -> None:
    """Ends this process when its parent has ended in any way."""
    parent = multiprocessing.parent_process()
    if parent is not None:

        def wait_and_end() -> None:
            parent.join()
            os._exit(1)

        threading.Thread(target=wait_and_end, daemon=True).start()


def serve_last() -> None:
    """Lowers the priority of this worker below those of the processes that wait for it."""
    os.nice(10)
    serve_quietly()


def serve_quietly() -> None:
    """For a process that its parent ends: Ctrl-C is handled by the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()


@contextmanager
def interrupts_held() -> Generator[None]:
    """Start processes in this context: Ctrl-C then reaches this process alone, and after it.

    A process that begins is interrupted like its parent, while it still imports what it runs, and
    prints a traceback.  Signals that are blocked here stay blocked in it.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def worker_pool(jobs: int, initializer: Callable[[], None]) -> Generator[ProcessPoolExecutor]:
    """``jobs`` processes, which are ended at once if the context is left by an exception."""
    pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), initializer=initializer)
    try:
        yield pool
    except BaseException:
        kill(pool)
        raise
    pool.shutdown()


def kill(pool: ProcessPoolExecutor) -> None:
    """End the processes of ``pool``, whatever they are doing, and wait until they have ended.

    After it, none of them writes to a folder that the caller removes.
    """
    processes = list((pool._processes or {}).values())  # pyright: ignore[reportPrivateUsage]
    pool.shutdown(wait=False, cancel_futures=True)
    for process in processes:
        process.kill()
    for process in processes:
        process.join()
