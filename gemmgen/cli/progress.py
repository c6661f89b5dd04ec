"""Progress of long work on standard error: a bar on a terminal, periodic lines elsewhere."""

from __future__ import annotations

import sys
import time

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

EVERY = 30.0
"""Seconds between two lines."""


class Bar:
    """A context; calls redraw the bar, which is erased at the end.  ``lines``: prints them."""

    def __init__(self, stage: str, *, lines: bool = False) -> None:
        live = sys.stderr.isatty()
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[note]}"),
            console=Console(stderr=True),
            transient=True,
            disable=not live,
        )
        self._stage, self._task = stage, self._bar.add_task(stage, total=None, note="")
        self._next = 0.0 if lines and not live else float("inf")

    def __call__(self, done: int, total: int, stage: str = "", note: str = "") -> None:
        stage = stage or self._stage
        self._bar.update(self._task, description=stage, completed=done, total=total, note=note)
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + EVERY
            click.echo(f"{stage}: {done} of {total} {note}", err=True)

    def __enter__(self) -> Bar:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()
