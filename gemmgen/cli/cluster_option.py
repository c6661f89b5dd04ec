"""The options of commands that can run on a cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from gemmgen.base.errors import UsageError

F = TypeVar("F", bound=Callable[..., Any])

scheduler = click.option(
    "--scheduler",
    metavar="ADDRESS",
    help="Run on the workers of this Dask cluster, tcp://host:8786 say; pip install '.[cluster]'.",
)


def task_seconds(seconds: float, what: str) -> Callable[[F], F]:
    """``--task-seconds``, by default ``seconds``, for ``what`` a task is."""
    return click.option(
        "--task-seconds",
        type=click.FloatRange(1, 86400),
        default=seconds,
        show_default=True,
        metavar="SECONDS",
        help=f"With --scheduler: {what} that takes longer on a worker is lost.",
    )


def written(*names: str) -> list[str]:
    """The options of these parameters that the command line has, as it spells them."""
    ctx = click.get_current_context()
    given = click.core.ParameterSource.COMMANDLINE
    return [
        f"--{name.replace('_', '-')}" for name in names if ctx.get_parameter_source(name) is given
    ]


def check(scheduler: str | None, *local: str) -> None:
    """Raises ``UsageError`` for options that do not go together: the parameters ``local`` with
    --scheduler, or --task-seconds without it."""
    if scheduler is None and written("task_seconds"):
        raise UsageError("--task-seconds goes with --scheduler: leave it out")
    for option in written(*local) if scheduler is not None else ():
        raise UsageError(f"{option} is for a run on this machine: leave it or --scheduler out")
