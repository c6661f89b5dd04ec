"""Choices of schedules, kept on disk for later processes.

A choice depends on the problem, the request, the GPU's figures, the stored results and the package.
All of them are in its key, so that none outlives a change of them.
"""

from __future__ import annotations

from collections.abc import Mapping

from gemmgen.base import caches, installation
from gemmgen.explore.results.store_path import path
from gemmgen.gpu.gpus import Gpu
from gemmgen.ir.decompositions import Fast
from gemmgen.schedule.formatting import format_schedule
from gemmgen.schedule.model import Schedule

_FILE = "chosen.sched"


def name_of(
    problem: Schedule,
    extents: Mapping[str, int],
    strides: Mapping[str, tuple[int, ...]],
    gpu: Gpu,
    fast: Fast,
) -> str:
    """The name of the entry for these tensors.  ``strides`` are by tensor."""
    parts = (
        format_schedule(problem),
        str(sorted(extents.items())),
        str(sorted(strides.items())),
        repr(gpu),
        str(fast),
        _results(),
        installation.state(),
    )
    return f"choice-{caches.key(*parts)}"


def read(name: str) -> str | None:
    """The text of the schedule that was chosen before."""
    files = caches.read(name)
    return files[_FILE].decode() if files is not None and _FILE in files else None


def write(name: str, text: str) -> None:
    """Keeps the text of a schedule, where there is a cache."""
    caches.write(name, {_FILE: text.encode()})


def _results() -> str:
    """The state of the user's stored results: another one after each that is stored."""
    where = path()
    try:
        about = where.stat() if where is not None else None
    except OSError:
        about = None
    return "" if about is None else f"{about.st_ino} {about.st_size} {about.st_mtime_ns}"
