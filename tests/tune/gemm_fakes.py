"""A lab for ``tune --gemm`` without compiler and GPU, on its own clock."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from math import log2

from gemmgen.base.errors import GemmgenError
from gemmgen.base.source import Source
from gemmgen.explore.autotune.edits import Place, value_at
from gemmgen.explore.autotune.judged_candidates import JudgedCandidate, judge
from gemmgen.explore.autotune.neighbors import Alternatives
from gemmgen.explore.request import Request
from gemmgen.explore.tune.cubins import Built
from gemmgen.explore.tune.legal_points import SearchPoint
from gemmgen.explore.tune.measuring import Candidate, DeviceInfo, Reading, Rejection, Screen
from gemmgen.gpu.gpus import GPUS
from gemmgen.language import parse_schedule
from gemmgen.schedule.formatting import format_schedule
from gemmgen.schedule.model import Schedule

from . import fakes

GEMM = "C[m, n] = A[m, k] * B[n, k]"
HERE = DeviceInfo("Fake GPU", "sm_90", GPUS["H200"], "580.1", "13.0")
RIVAL = 0.030
"""Milliseconds of cuBLAS."""


def request(shape: tuple[int, ...] = (2048, 2304, 768), **more: object) -> Request:
    return Request.of(GEMM, shape, dtype="bf16", gpu=HERE.gpu, **more)  # type: ignore[arg-type]


@cache
def _parsed(text: str) -> Schedule:
    return parse_schedule(Source(text))


def size(text: str, directive: str, argument: str) -> int:
    found = value_at(_parsed(text), Place(directive, (), argument))
    return found if isinstance(found, int) else 1


LEAST = 0.030
"""The least milliseconds of ``cost``."""


def cost(text: str) -> float:
    """Milliseconds: least at a tile and a cluster that no first candidate has."""
    far = abs(log2(size(text, "tile", "m") / 64)) + abs(log2(size(text, "tile", "n") / 256))
    far += abs(log2(size(text, "cluster", "m") / 4)) + abs(log2(size(text, "raster", "group")))
    return LEAST * (1 + 0.1 * far)


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class FakeLab:
    """Knows each candidate's text by its number; ``judged`` only reads texts, unless ``real``."""

    clock: Clock = field(default_factory=Clock)
    real: bool = False
    batch: int = 8
    wrong: Callable[[str], bool] = lambda text: False
    later: Callable[[str], bool] = lambda text: False
    unproved: Callable[[str], bool] = lambda text: False
    noise: Callable[[str, int], float] = lambda text, rounds: 0.0
    before: Callable[[str], None] = lambda text: None
    device_info: DeviceInfo = HERE
    texts: dict[int, str] = field(default_factory=dict[int, str])
    timed: list[str] = field(default_factory=list[str])
    runners: list[Request] = field(default_factory=list[Request])

    @property
    def builder(self) -> FakeLab:
        return self

    def searched(self) -> None: ...

    def judge(self, request: Request) -> Callable[[Sequence[Alternatives]], tuple[object, ...]]:
        def several(texts: Sequence[Alternatives]) -> tuple[JudgedCandidate | None, ...]:
            one = judge if self.real else _read
            return tuple(one(each, request) for each in texts)

        return several

    def runner(self, request: Request) -> FakeLab:
        self.runners.append(request)
        return self

    def submit(self, points: Sequence[SearchPoint]) -> Callable[[], tuple[Built, ...]]:
        def wait() -> tuple[Built, ...]:
            self.clock.now += 0.4
            self.texts |= {point.number: point.text for point in points}
            return tuple(self._built(point) for point in points)

        return wait

    def _built(self, point: SearchPoint) -> Built:
        candidate = Candidate(point.number, fakes.interface(), "sm_90a", fakes.FILES)
        return Built(point.number, f"code of {point.text}", candidate, 168, 0)

    def check(self, candidates: Sequence[Candidate]) -> tuple[Rejection | None, ...]:
        bad = Rejection("wrong", "C[0, 0] = 1.0 instead of 2.0")
        return tuple(bad if self.wrong(self.texts[c.number]) else None for c in candidates)

    def time(
        self, candidates: Sequence[Candidate], rounds: int, screen: Screen | None = None
    ) -> tuple[Reading, ...]:
        sample = fakes.SAMPLE if screen is None else fakes.SCREENED
        return tuple(self._timed(candidate, rounds, sample) for candidate in candidates)

    def _timed(self, candidate: Candidate, rounds: int, sample: float) -> Reading:
        text = self.texts[candidate.number]
        assert not self.wrong(text), "a wrong kernel is timed"
        self.before(text)
        self.timed.append(text)
        self.clock.now += rounds * sample
        ms = cost(text) * (1 + self.noise(text, rounds))
        finding = Rejection("wrong", "nan after it was timed") if self.later(text) else None
        return Reading(candidate.number, (ms,), (RIVAL,), finding)

    def prove(self, candidate: Candidate, text: str) -> Rejection | None:
        assert text == self.texts[candidate.number]
        return Rejection("wrong", "ragged edge") if self.unproved(text) else None


def _read(alternatives: Alternatives, request: Request) -> JudgedCandidate | None:
    """The first text that can be read, as if all of them were legal."""
    for text in alternatives:
        try:
            found = format_schedule(_parsed(text))
        except GemmgenError:
            continue
        return JudgedCandidate(found, cost(found))
    return None


@dataclass
class MemoryKeeper:
    """Keeps results in a list of events, the order of their arrival."""

    known: tuple[str, ...] = ()
    kept: dict[tuple[tuple[int, ...], str], float] = field(default_factory=dict)
    dropped: list[str] = field(default_factory=list[str])

    def stored(self, request: Request) -> Sequence[str]:
        return self.known

    def keep(self, request: Request, text: str, ms: float, rival: float | None) -> None:
        self.kept[request.shape, text] = ms

    def drop(self, request: Request, text: str, *, wrong: bool) -> None:
        assert wrong or (request.shape, text) in self.kept
        self.kept.pop((request.shape, text), None)
        self.dropped.append(text)


class StubRunner:
    """In the place of ``GpuRunner`` in its process: a kernel is right if it is a cubin for the
    target, and its time is the length of its machine code."""

    def __init__(self, text: str, shapes: Sequence[tuple[int, ...]], strides: object = None):
        parse_schedule(Source(text))
        assert len(shapes) < 2
        self.device_info = HERE

    def check(self, candidates: Sequence[Candidate]) -> tuple[Rejection | None, ...]:
        return tuple(map(self._checked, candidates))

    def _checked(self, candidate: Candidate) -> Rejection | None:
        data = candidate.files.cubin.read_bytes()
        return None if data[:4] == b"\x7fELF" else Rejection("wrong", "no cubin")

    def time(
        self, candidates: Sequence[Candidate], rounds: int, screen: Screen | None = None
    ) -> tuple[Reading, ...]:
        return tuple(
            Reading(c.number, (len(c.files.cubin.read_bytes()) / 1e6,), (RIVAL,))
            for c in candidates
        )

    def prove(self, candidate: Candidate, text: str) -> Rejection | None:
        return None
