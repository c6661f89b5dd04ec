"""A progress bar on standard error; if that is no terminal, periodic lines."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

if TYPE_CHECKING:
    from gemmgen.explore.tune.search import SearchProgress
    from gemmgen.explore.tune.trials import Trial

EVERY = 30.0
"""Seconds between two lines."""


class Watching:
    """Called with the progress of a search; the bar is erased at the end, ``best`` remains."""

    def __init__(self) -> None:
        self._live = sys.stderr.isatty()
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[best]}"),
            console=Console(stderr=True),
            transient=True,
            disable=not self._live,
        )
        self._task = self._bar.add_task("starting", total=None, best="")
        self._next = 0.0
        self.best: Trial | None = None

    def __call__(self, progress: SearchProgress) -> None:
        best = self.best = progress.best or self.best
        speed = ""
        if best is not None:
            speed = " ".join(f"{ms:.4f}" for ms in best.ms) + " ms"
            if best.share is not None:
                speed += " = " + " ".join(f"{share:.1%}" for share in best.share) + " of cuBLAS"
        self._bar.update(
            self._task,
            description=progress.stage,
            completed=progress.done,
            total=progress.total,
            best=speed,
        )
        if not self._live and time.monotonic() >= self._next:
            self._next = time.monotonic() + EVERY
            click.echo(f"{progress.stage}: {progress.done} of {progress.total} {speed}", err=True)

    def __enter__(self) -> Watching:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()
