"""Ctrl-C and SIGTERM in commands that end with the results so far."""

from __future__ import annotations

import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager

INTERRUPTED, TERMINATED = 130, 143
"""The exit codes after Ctrl-C and after SIGTERM."""


def interrupted_code(ended: KeyboardInterrupt) -> int:
    """The exit code after Ctrl-C or SIGTERM."""
    return TERMINATED if isinstance(ended, Terminated) else INTERRUPTED


class Terminated(KeyboardInterrupt):
    """SIGTERM was received; handled like Ctrl-C."""


@contextmanager
def sigterm_raises() -> Generator[None]:
    """A context in which SIGTERM raises ``Terminated`` in the main thread."""

    def raise_it(*_: object) -> None:
        raise Terminated

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, raise_it)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
