"""Candidates: schedules that are legal for a request, with their estimates, judged in worker
processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from gemmgen.base.errors import GemmgenError
from gemmgen.base.record import record
from gemmgen.base.source import Source
from gemmgen.explore import cost
from gemmgen.explore.autotune.edits import Place, value_at
from gemmgen.explore.autotune.neighbors import Alternatives
from gemmgen.explore.suggest.request import Request
from gemmgen.explore.suggest.taking import takes
from gemmgen.explore.suggest.warpgroup_plans import WarpgroupForm, sizes_of
from gemmgen.explore.tune.footprint import block_sizes
from gemmgen.explore.tune.space import Settings
from gemmgen.explore.tune.workers import Workers
from gemmgen.explore.warpgroup_cost import HELD, SLAB, WarpgroupSizes, estimate
from gemmgen.gpu.gpus import Gpu
from gemmgen.ir.dtypes import BYTES
from gemmgen.ir.target import has
from gemmgen.pipeline import Emitted, compile_source
from gemmgen.schedule.formatting import format_schedule
from gemmgen.schedule.model import Schedule

Operands = tuple[tuple[str, str | None], ...]


@record
class Judged:
    """The canonical text of a legal schedule, and its estimated seconds."""

    text: str
    seconds: float


@record
class Proposal:
    """A candidate: its number in this run, its text, where it comes from, and its estimate.

    ``settings`` is what trials of a space have; there is none here.
    """

    number: int
    text: str
    origin: str
    seconds: float
    settings: Settings = ()


Judge = Callable[[Sequence[Alternatives]], tuple[Judged | None, ...]]
"""Finds the first legal text of each of several alternatives, None if there is none."""


def judge(alternatives: Alternatives, request: Request) -> Judged | None:
    """The first text whose kernel takes the request's tensors on its GPU."""
    for text in alternatives:
        try:
            emitted = compile_source(Source(text))
        except GemmgenError:
            continue
        if _runs(emitted.target, request.gpu) and takes(emitted, request):
            return Judged(format_schedule(emitted.schedule), estimated(emitted, request))
    return None


class JudgingWorkers:
    """``judge`` for one request in the processes of ``workers``."""

    def __init__(self, workers: Workers, request: Request):
        self._workers, self._request = workers, request

    def __call__(self, several: Sequence[Alternatives]) -> tuple[Judged | None, ...]:
        jobs = [self._workers.submit(judge, each, self._request) for each in several]
        return tuple(self._workers.result(job) for job in jobs)


def estimated(emitted: Emitted, request: Request) -> float:
    """Seconds by the cost model for the kernel's mechanism."""
    sizes = warpgroup_sizes(emitted.schedule, request)
    if sizes is not None:
        return estimate(sizes, request.shape, request.gpu)
    block = block_sizes(emitted.program, emitted.interface)
    return cost.estimate(cost.launched(block, request.shape, request.gpu), request.gpu)


def warpgroup_sizes(schedule: Schedule, request: Request) -> WarpgroupSizes | None:
    """The sizes of a block of a schedule with wgmma; None for other schedules, and for those that
    the model of warpgroups does not cover."""

    def value(directive: str, argument: str, operands: Operands = ()) -> int:
        found = value_at(schedule, Place(directive, operands, argument))
        return found if isinstance(found, int) else 1

    names = {directive.name for directive in schedule.directives}
    rows, columns, k = (value("tile", letter) for letter in "mnk")
    cluster = value("cluster", "m"), value("cluster", "n")
    whole = k * BYTES[request.dtype["a"]] % SLAB == 0 and columns % 8 == 0
    if value_at(schedule, Place("tensor_core", (), "via")) != "wgmma":
        return None
    if not whole or prod(cluster) not in HELD or "decompose" in names:
        return None
    pingpong = value_at(schedule, Place("warp_specialize", (), "order")) == "pingpong"
    consumers = 2 if pingpong else max(1, rows // value("warp_tile", "m"))
    form = WarpgroupForm(
        (rows, columns, k), consumers, pingpong, cluster, value("split_k", "parts")
    )
    staged = any(
        directive.name == "async_copy" and operand.tensor == schedule.gemm.c.tensor
        for directive in schedule.directives
        for operand in directive.operands
    )
    return sizes_of(
        form,
        request,
        persistent="persistent" in names,
        staged=staged,
        stages=value("double_buffer", "stages", (("a", None),)),
    )


def _runs(target: str, gpu: Gpu) -> bool:
    """Whether a kernel of ``target`` runs on the GPU: ``sm_90a`` on sm_90 alone."""
    digits = target.removeprefix("sm_")
    return has(gpu.arch, int(digits)) if digits.isdigit() else target[:-1] == gpu.arch
