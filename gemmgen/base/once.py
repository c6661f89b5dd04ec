"""What several threads ask for at once is made by one; the others wait, and find it made."""

from __future__ import annotations

import os
import threading
from collections.abc import Generator, Hashable
from contextlib import contextmanager

_locks: dict[Hashable, threading.Lock] = {}


@contextmanager
def made_once(key: Hashable) -> Generator[None]:
    """Within the block no other thread of the process is in a block of an equal key.

    Look there whether another thread has made it meanwhile.  Blocks of one key don't nest.
    """
    lock = _locks.setdefault(key, threading.Lock())
    try:
        with lock:
            yield
    finally:  # those that wait have the lock; later ones find what was made
        _locks.pop(key, None)


def _renew() -> None:
    """In a fork, where threads that held locks do not exist."""
    _locks.clear()


os.register_at_fork(after_in_child=_renew)
