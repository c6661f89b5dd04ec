"""Progress of long work: one line on standard error, if that is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager

Tick = Callable[[int, int], None]


@contextmanager
def progress(what: str) -> Generator[Tick]:
    """A context with a function to call with (done, total); the line is erased at the end."""
    live = sys.stderr.isatty()

    def tick(done: int, total: int) -> None:
        if live:
            sys.stderr.write(f"\r\x1b[K{what}: {done} of {total}")
            sys.stderr.flush()

    try:
        if live:
            sys.stderr.write(f"{what} ...")
            sys.stderr.flush()
        yield tick
    finally:
        if live:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
