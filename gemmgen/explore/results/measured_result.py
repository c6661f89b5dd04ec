"""A measured result: a schedule, the problem and the machine it was timed on, and its time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from math import log, prod
from operator import sub
from typing import Literal, cast, get_args

from gemmgen import __version__
from gemmgen.base.record import record
from gemmgen.base.source import Source
from gemmgen.base.units import significant
from gemmgen.explore.request import Request
from gemmgen.explore.results.canonical_names import canonical
from gemmgen.explore.results.code_hash import code_hash
from gemmgen.gpu.gpus import DEFAULT, GPUS
from gemmgen.ir.dtypes import DType
from gemmgen.ir.launch_shape import Shape
from gemmgen.language import parse_schedule
from gemmgen.pipeline import compile_schedule
from gemmgen.schedule.formatting import format_schedule
from gemmgen.schedule.model import Schedule

Origin = Literal["tune", "shipped", "imported"]
ORIGINS: tuple[Origin, ...] = get_args(Origin)
Pitches = tuple[int, int, int]
DENSE: Pitches = (0, 0, 0)


def terms_of(schedule: Schedule) -> DType | None:
    """The type of the terms whose products it computes f32 from (``decompose``), with less
    precision; None if it does not."""
    for directive in schedule.directives:
        if directive.name == "decompose" and (into := directive.argument("into")) is not None:
            return cast(DType, into.value)
    return None


@record
class ProblemKey:
    """A problem at a shape: ``text`` has the gemm, dtype and epilogue lines in canonical names.

    ``shape`` is M, N, K and batches; ``pitches`` are the leading dimensions of A, B and C in
    elements, 0 where a tensor is dense.
    """

    text: str
    shape: Shape
    pitches: Pitches = DENSE

    @staticmethod
    def of(schedule: Schedule, shape: Shape, pitches: Iterable[tuple[str, int]] = ()) -> ProblemKey:
        """The key of a schedule's problem; ``pitches`` are by the tensors' names."""
        problem = schedule.problem_alone
        return ProblemKey.of_request(Request(problem, shape, GPUS[DEFAULT], tuple(pitches)))

    @staticmethod
    def checked(
        schedule: Schedule, shape: Shape, pitches: Iterable[tuple[str, int]] = ()
    ) -> ProblemKey:
        """The same; raises ``UsageError`` for a leading dimension that is less than a row."""
        problem = schedule.problem_alone
        Request(problem, shape, GPUS[DEFAULT], tuple(pitches)).check_pitches()
        return ProblemKey.of(schedule, shape, pitches)

    @staticmethod
    def of_request(request: Request) -> ProblemKey:
        dense = replace(request, pitches=())
        a, b, c = (
            0 if request.pitch(role) == dense.pitch(role) else request.pitch(role) for role in "abc"
        )
        return ProblemKey(problem_text(request.problem), request.shape, (a, b, c))

    def distance(self, shape: Shape) -> float:
        """The sum of the logarithms of the extents' ratios, without their signs."""
        return sum(map(abs, map(sub, _logs(self.shape), _logs(shape))))


@record
class MachineInfo:
    """What a time depends on besides the kernel: the GPU's name as its driver says it, its
    architecture, and the versions of the driver and of CUDA (of NVRTC)."""

    gpu: str
    arch: str
    driver: str = ""
    cuda: str = ""

    @staticmethod
    def here(device: int) -> MachineInfo:
        """The GPU ``device`` of this process; raises ``CannotCheck`` if there is none."""
        from gemmgen.gpu import device as gpu
        from gemmgen.gpu.setup import setup

        versions = setup(device)
        major, minor = gpu.capability(device)
        return MachineInfo(gpu.name(device), f"sm_{major}{minor}", versions.driver, versions.cuda)


@record
class MeasuredResult:
    """``schedule`` is canonical text in canonical names; ``seconds`` the median time of a launch,
    ``vendor`` that of the vendor's library in the same run; ``date`` in ISO format, UTC.

    ``code`` is the hash of the text that gemmgen emitted for ``schedule``: if it emits another one
    now, the result is stale.  ``version`` is gemmgen's.
    """

    problem: ProblemKey
    schedule: str
    machine: MachineInfo
    seconds: float
    vendor: float | None
    date: str
    origin: Origin
    code: str
    version: str = __version__

    @staticmethod
    def of(
        schedule: Schedule | str,
        shape: Shape,
        machine: MachineInfo,
        seconds: float,
        *,
        vendor: float | None = None,
        pitches: Iterable[tuple[str, int]] = (),
        origin: Origin = "tune",
        emitted: str | None = None,
    ) -> MeasuredResult:
        """The result of a measurement that was made now.

        ``schedule`` has no sets; ``emitted`` is its kernel's text if it is at hand, which saves a
        compilation.  Raises ``ScheduleError`` for a schedule that does not compile.
        """
        if isinstance(schedule, str):
            schedule = parse_schedule(Source(schedule))
        stored = canonical(schedule)
        same = stored == replace(schedule, requires=())
        text = emitted if same and emitted is not None else compile_schedule(stored).text
        return MeasuredResult(
            problem=ProblemKey.of(schedule, shape, pitches),
            schedule=format_schedule(stored),
            machine=machine,
            seconds=seconds,
            vendor=vendor,
            date=dated(datetime.now(UTC)),
            origin=origin,
            code=code_hash(text),
        )

    @property
    def tflops(self) -> float:
        return 2 * prod(self.problem.shape) / self.seconds / 1e12

    def described(self) -> str:
        """``measured: 712 TFLOP/s on NVIDIA H200, 2026-11-20, by tune``."""
        by = {"tune": "by tune", "shipped": "shipped with gemmgen", "imported": "imported"}
        return (
            f"measured: {significant(self.tflops)} TFLOP/s on {self.machine.gpu}, "
            f"{self.date[:10]}, {by[self.origin]}"
        )


@lru_cache(1 << 16)
def _logs(shape: Shape) -> tuple[float, ...]:
    return tuple(log(max(1, x)) for x in shape)


def dated(moment: datetime) -> str:
    """A moment of UTC as results have it: later ones are greater texts."""
    return moment.isoformat(timespec="milliseconds")


def problem_text(problem: Schedule) -> str:
    """The gemm, dtype and epilogue lines of a schedule in canonical names."""
    alone = replace(canonical(problem.problem_alone), target=Schedule().target)
    return format_schedule(alone)
