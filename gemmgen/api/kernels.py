"""gemmgen from Python: kernels that are called on arrays, and their text.

kernel = gemmgen.compile("vectorized.sched")
c = kernel(A=a, B=b, bias=bias)
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast, overload

from gemmgen import host_texts
from gemmgen.api.builder import ScheduleBuilder
from gemmgen.base.choices import check_choice, check_flag
from gemmgen.base.errors import CannotCheck, UsageError
from gemmgen.base.source import Source, digits, value_shown
from gemmgen.host_texts import ELEMENT_TYPES, ElementTypes
from gemmgen.ir.target import TARGETS
from gemmgen.language import parse_schedule
from gemmgen.pipeline import Emitted, compile_schedule
from gemmgen.schedule.model import Schedule
from gemmgen.schedule.read import read_source

if TYPE_CHECKING:
    from gemmgen.gpu.launch import Kernel
    from gemmgen.sim.host_kernel import HostKernel

AnySchedule = str | Path | ScheduleBuilder | Schedule
"""A file (a ``Path``, or a string that ends in ``.sched``), a text, a builder, or its value."""

Settings = Mapping[str, int | str]


@overload
def compile(
    schedule: AnySchedule,
    *,
    arch: str | None = None,
    set: Settings | None = None,
    device: Literal["gpu"] = "gpu",
) -> Kernel: ...


@overload
def compile(
    schedule: AnySchedule,
    *,
    arch: str | None = None,
    set: Settings | None = None,
    device: Literal["cpu"],
) -> HostKernel: ...


def compile(
    schedule: AnySchedule,
    *,
    arch: str | None = None,
    set: Settings | None = None,
    device: Literal["gpu", "cpu"] = "gpu",
) -> Kernel | HostKernel:
    """The kernel of ``schedule`` on the current GPU, to be called on CuPy or PyTorch arrays.

    ``arch`` replaces the schedule's ``target``; ``set`` fixes its sets, ``{"tile.m": 128}`` say.
    The kernel takes arguments by the schedule's names, and launches on the caller's stream.  With
    ``device="cpu"`` it takes NumPy arrays, and g++ compiles the same text for this machine, which
    is slow and meant for trying a schedule without a GPU.  Kernels are cached by schedule.  Raises
    ``ScheduleError`` for a mistake in the schedule, and for a ``require registers`` or ``require
    spills`` that does not hold on its target (on the CPU: if a compiler is installed);
    ``CannotCheck`` if there is no GPU (no g++).
    """
    check_choice("device", device, ("gpu", "cpu"))
    found = _known(schedule, arch, set)
    if device == "cpu":
        return _host_kernel(found, arch)
    return _kernel(found, arch, _current_gpu())


def emit_cuda(
    schedule: AnySchedule,
    *,
    arch: str | None = None,
    set: Settings | None = None,
    types: ElementTypes = "bits",
    header: bool = False,
) -> str:
    """The CUDA C text of ``schedule``, as ``gemmgen emit`` prints it.

    ``types="cuda"``: the launcher takes ``__half``, ``__nv_bfloat16`` and FP8 types, whose headers
    the text includes, in place of their bits.  ``header``: the text is a C++ header that declares
    the launcher.

    Raises ``ScheduleError`` for mistakes, and for a ``require registers`` or ``require spills``
    that does not hold; ``CannotCheck`` if it has such lines and no compiler is installed.
    """
    check_choice("types", types, ELEMENT_TYPES)
    check_flag("header", header)
    emitted = compile_any(schedule, arch=arch, set=set)
    check_requirements(emitted)
    if header:
        return host_texts.header(emitted, types)
    return emitted.text if types == "bits" else host_texts.with_types(emitted, types)


def compile_any(
    schedule: AnySchedule, *, arch: str | None = None, set: Settings | None = None
) -> Emitted:
    """The text and interface of ``schedule``; no GPU is needed, and ``require`` lines are not
    checked."""
    return _emitted(_known(schedule, arch, set), arch)


def _known(schedule: AnySchedule, arch: str | None, set: Settings | None) -> Source | Schedule:
    """A text unparsed, so that it is parsed once; of all else the schedule, its sets fixed."""
    if arch is not None:
        check_choice("arch", arch, TARGETS)
    settings = fixed(set)
    match schedule:
        case Schedule():
            if settings:
                raise UsageError("set= fixes the sets of a schedule's text; a Schedule has none")
            return schedule
        case ScheduleBuilder():
            return schedule.build(settings)
        case Path():
            source = read_source(str(schedule))
        case str() if schedule.endswith(".sched"):
            source = read_source(schedule)
        case str():
            source = Source(schedule)
        case _:
            what = type(schedule).__name__
            raise UsageError(f"a schedule is a path, a text or a Schedule, not a {what}")
    return parse_schedule(source, settings) if settings else source


def fixed(settings: object) -> tuple[tuple[str, str], ...]:
    """``set=`` as pairs; raises ``UsageError`` unless it maps keys to values."""
    if settings is None:
        return ()
    if not isinstance(settings, Mapping):
        kind = type(settings).__name__
        raise UsageError(f'set= is a {kind}; it maps keys to values: {{"tile.m": 128}}')
    found: list[tuple[str, str]] = []
    for key, value in cast(Mapping[object, object], settings).items():
        if not isinstance(key, str) or isinstance(value, bool) or not isinstance(value, int | str):
            raise UsageError(
                f"set={{{value_shown(key)}: {value_shown(value)}}} fixes nothing; write "
                '{"tile.m": 128}, the key of a set and its value'
            )
        found.append((key, digits(value) if isinstance(value, int) else value))
    return tuple(found)


_KEPT = 128
"""Schedules whose kernels a process caches; the least recently used is evicted."""


@lru_cache(_KEPT)
def _emitted(known: Source | Schedule, arch: str | None) -> Emitted:
    found = parse_schedule(known) if isinstance(known, Source) else known
    return compile_schedule(replace(found, target=arch) if arch else found)


@lru_cache(_KEPT)
def _kernel(known: Source | Schedule, arch: str | None, gpu: int) -> Kernel:
    """The kernel on the GPU of this number, which must be current."""
    from gemmgen.gpu.launch import Kernel

    emitted = _emitted(known, arch)
    check_requirements(emitted)
    return Kernel.of(emitted)


@lru_cache(_KEPT)
def _host_kernel(known: Source | Schedule, arch: str | None) -> HostKernel:
    from gemmgen.sim.host_kernel import HostKernel

    emitted = _emitted(known, arch)
    with suppress(CannotCheck):
        check_requirements(emitted)
    return HostKernel.of(emitted)


def check_requirements(emitted: Emitted) -> None:
    """``check_gates``, imported only for schedules with ``require`` lines."""
    if emitted.schedule.requires:
        from gemmgen.proof.gates import check_gates

        check_gates(emitted)


def _current_gpu() -> int:
    from gemmgen.gpu.device import cupy

    return cupy().cuda.runtime.getDevice()
