"""Worker processes that end with their parent."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading


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
