"""Processes that work for this one, and end when it does."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading


def end_with_parent() -> None:
    """Ends this process when the one that started it is gone, however that ended."""
    parent = multiprocessing.parent_process()
    if parent is not None:

        def wait_and_end() -> None:
            parent.join()
            os._exit(1)

        threading.Thread(target=wait_and_end, daemon=True).start()


def serve_last() -> None:
    """For many processes that keep every CPU busy: those who wait for their work go first."""
    os.nice(10)
    serve_quietly()


def serve_quietly() -> None:
    """For a process whose parent decides when it ends: Ctrl-C is the parent's to answer."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()
