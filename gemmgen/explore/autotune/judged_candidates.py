"""Candidates: schedules that are legal for a request, with their estimates, judged in worker
processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gemmgen.base.errors import GemmgenError
from gemmgen.base.record import record
from gemmgen.base.source import Source
from gemmgen.explore import cost
from gemmgen.explore.autotune.neighbors import Alternatives
from gemmgen.explore.request import Request
from gemmgen.explore.suggest.acceptance import accepts
from gemmgen.explore.suggest.warpgroup_schedules import plan_of
from gemmgen.explore.tune.footprint import block_sizes
from gemmgen.explore.tune.space import Settings
from gemmgen.explore.tune.workers import Workers
from gemmgen.gpu.gpus import Gpu
from gemmgen.ir.target import has
from gemmgen.pipeline import Emitted, compile_source


@record
class JudgedCandidate:
    """The canonical text of a legal schedule, and its estimated seconds."""

    text: str
    seconds: float


@record
class SearchProposal:
    """A candidate: its number in this run, its text, where it comes from, and its estimate.

    ``settings`` is what trials of a space have; there is none here.
    """

    number: int
    text: str
    origin: str
    seconds: float
    settings: Settings = ()


Judge = Callable[[Sequence[Alternatives]], tuple[JudgedCandidate | None, ...]]
"""Finds the first legal text of each of several alternatives, None if there is none."""


def judge(alternatives: Alternatives, request: Request) -> JudgedCandidate | None:
    """The first text whose kernel takes the request's tensors on its GPU."""
    for text in alternatives:
        try:
            emitted = compile_source(Source(text))
        except GemmgenError:
            continue
        if _runs(emitted.target, request.gpu) and accepts(emitted, request):
            return JudgedCandidate(emitted.schedule.text, estimated(emitted, request))
    return None


class JudgingWorkers:
    """``judge`` for one request in the processes of ``workers``."""

    def __init__(self, workers: Workers, request: Request):
        self._workers, self._request = workers, request

    def __call__(self, several: Sequence[Alternatives]) -> tuple[JudgedCandidate | None, ...]:
        jobs = [self._workers.submit(judge, each, self._request) for each in several]
        return tuple(self._workers.result(job) for job in jobs)


def estimated(emitted: Emitted, request: Request) -> float:
    """Seconds by the cost model for the kernel's mechanism."""
    plan = plan_of(emitted.schedule, request)
    if plan is not None:
        return plan.seconds
    block = block_sizes(emitted.program, emitted.interface)
    return cost.estimate(cost.launched(block, request.shape, request.gpu), request.gpu)


def _runs(target: str, gpu: Gpu) -> bool:
    """Whether a kernel of ``target`` runs on the GPU: ``sm_90a`` on sm_90 alone."""
    digits = target.removeprefix("sm_")
    return has(gpu.arch, int(digits)) if digits.isdigit() else target[:-1] == gpu.arch
