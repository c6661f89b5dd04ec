"""The options of commands that can run on a cluster."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gemmgen.base.errors import UsageError
from gemmgen.base.source import shown

if TYPE_CHECKING:
    from gemmgen.base.dask_client import DaskCluster

F = TypeVar("F", bound=Callable[..., Any])

scheduler = click.option(
    "--scheduler",
    metavar="ADDRESS",
    help="Run on the workers of this Dask cluster, tcp://host:8786 say; pip install '.[cluster]'.",
)

gpus = click.option(
    "--gpus",
    metavar="all|LIST",
    help="Measure on all GPUs of this machine, or on these: --gpus 0,1; pip install '.[cluster]'.",
)
_GPUS = re.compile(r"[0-9]{1,3}(,[0-9]{1,3})*", re.ASCII)


def check_unmeasured(option: str) -> None:
    """Raises ``UsageError`` if ``option``, which measures nothing, is given with a cluster."""
    for other in written("scheduler", "gpus"):
        raise UsageError(f"{option} measures nothing: leave {other} out")


@contextmanager
def gpu_workers(scheduler: str | None, gpus: str | None) -> Generator[DaskCluster | None]:
    """The workers with a GPU of --scheduler, or of this machine's --gpus; None without both."""
    if scheduler is None and gpus is None:
        yield None
        return
    if scheduler is not None and gpus is not None:
        raise UsageError("--scheduler and --gpus name workers, each of its own: leave one out")
    from gemmgen.base.dask_client import connected
    from gemmgen.base.local_gpus import local_gpus

    with ExitStack() as stack:
        if gpus is not None:
            scheduler = stack.enter_context(local_gpus(_numbers(gpus)))
        yield stack.enter_context(connected(scheduler or "", gpu=True))


def _numbers(gpus: str) -> tuple[str, ...]:
    """CUDA's numbers of the GPUs; those of CUDA_VISIBLE_DEVICES for ``all``."""
    if gpus == "all":
        from gemmgen.gpu import device

        count, visible = device.count(), os.environ.get("CUDA_VISIBLE_DEVICES", "")
        return tuple(visible.split(",") if visible else map(str, range(count)))[:count]
    numbers = tuple(gpus.split(","))
    if not _GPUS.fullmatch(gpus) or len(set(numbers)) < len(numbers):
        raise UsageError(f"--gpus: {shown(gpus)} is not a list of GPUs; write all, or 0,1")
    return numbers


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
