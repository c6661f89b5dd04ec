"""The bank conflicts of the same schedule without its pads and swizzles."""

from __future__ import annotations

from dataclasses import replace

from gemmgen.analyze.analyzed_kernel import AnalyzedKernel, compile_kernel
from gemmgen.analyze.maps import Picture, pictures
from gemmgen.analyze.whole_tiles import staged_tiles, stages_of, whole_tiles
from gemmgen.base.errors import ScheduleError
from gemmgen.base.record import record
from gemmgen.schedule.model import Schedule

AGAINST_CONFLICTS = ("pad", "swizzle")
"""Directives that move elements of a shared tile to other banks, and do nothing else."""


@record
class BankMaps:
    """The costliest write and the costliest read of ``array`` by a warp: ``now``, and ``before``
    the ``statements`` that are meant to avoid conflicts; if there are none of them, it is empty."""

    array: str
    statements: tuple[str, ...]
    before: tuple[Picture, ...]
    now: tuple[Picture, ...]


def bank_maps(kernel: AnalyzedKernel) -> tuple[BankMaps, ...]:
    """One for each operand's tile in shared memory."""
    plain = _without(kernel.emitted.schedule)
    return tuple(
        BankMaps(
            name,
            tuple(o for o in kernel.program.main.buffer(name).origins if _is_against(o)),
            _maps(plain, name) if plain else (),
            _maps(kernel, name),
        )
        for name in staged_tiles(kernel)
    )


def _is_against(origin: str) -> bool:
    return origin.split()[0] in AGAINST_CONFLICTS


def _without(schedule: Schedule) -> AnalyzedKernel | None:
    """The kernel of ``schedule`` without these directives; None if it has none, or needs them."""
    kept = tuple(d for d in schedule.directives if d.name not in AGAINST_CONFLICTS)
    if kept == schedule.directives:
        return None
    try:
        return compile_kernel(replace(schedule, directives=kept))
    except ScheduleError:
        return None


def _maps(kernel: AnalyzedKernel, array: str) -> tuple[Picture, ...]:
    shape = whole_tiles(kernel, stages_of(kernel))
    return pictures(kernel, shape, f"{kernel.program.main.buffer(array).tensor}.shared")
