"""SIGTERM as an exception, for an orderly end."""

from __future__ import annotations

import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager


class Terminated(KeyboardInterrupt):
    """SIGTERM was received; handled like Ctrl-C."""


@contextmanager
def as_exception() -> Generator[None]:
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
