"""Schedules of ``gemmgen.suggest`` for operators whose own schedule has no directives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from math import log, prod
from typing import TYPE_CHECKING

from gemmgen.base.errors import UsageError
from gemmgen.calling.arguments import View
from gemmgen.gpu.gpus import Gpu
from gemmgen.ir.decompositions import Fast, allowed_terms
from gemmgen.ir.target import SINCE, has
from gemmgen.pipeline import Emitted
from gemmgen.schedule.formatting import format_schedule
from gemmgen.schedule.model import Gemm, Schedule
from gemmgen.schedule.roles import batches, matrix, roles
from gemmgen.torch import kept_choices
from gemmgen.torch.siblings import compiled

if TYPE_CHECKING:
    from gemmgen.explore.request import Request
    from gemmgen.explore.suggest.choose import Suggestion

LEAST = 2**17
"""Multiply-adds of f32 or f64 below which launch overhead hides the gain of a better schedule."""


def suggested(
    schedule: Schedule,
    extents: Mapping[str, int],
    views: Mapping[str, View],
    gpu: Gpu,
    *,
    fast: Fast = False,
) -> Emitted | None:
    """The kernel of ``suggestion``, without its ``assume`` lines, so that it runs at other extents
    too; None for small products that tensor cores don't multiply, and where there is none.

    A choice is kept on disk, so that another process compiles its schedule at once.
    """
    gemm = schedule.gemm
    strides = {x.tensor: views[x.tensor].strides for x in (gemm.a, gemm.b, gemm.c)}
    name = kept_choices.name_of(schedule, extents, strides, gpu, fast)
    kept = kept_choices.read(name)
    if kept is not None:
        return compiled(kept)
    found = suggestion(schedule, extents, views, gpu, fast=fast)
    if found is None:
        return None
    text = format_schedule(replace(found.schedule, assumes=()))
    kept_choices.write(name, text)
    return compiled(text) if found.schedule.assumes else found.emitted


def suggestion(
    schedule: Schedule,
    extents: Mapping[str, int],
    views: Mapping[str, View],
    gpu: Gpu,
    *,
    fast: Fast = False,
) -> Suggestion | None:
    """What ``suggest`` chooses for these tensors; None as for ``suggested``, and if there is no
    element.  ``fast`` has no effect but for f32 on a GPU with wgmma."""
    gemm = schedule.gemm
    shape = tuple(extents[letter] for letter in (*roles(gemm), *batches(gemm)))
    if 0 in shape:
        return None
    small = prod(shape) < LEAST and schedule.same_bits is None
    if small and dict(schedule.dtypes)[gemm.a.tensor] in ("f32", "f64"):
        return None
    from gemmgen.explore.suggest.choose import choose

    try:
        return choose(request_of(schedule, extents, views, gpu, fast=fast))
    except UsageError:  # no form for the types on this GPU
        return None


def request_of(
    schedule: Schedule,
    extents: Mapping[str, int],
    views: Mapping[str, View],
    gpu: Gpu,
    *,
    fast: Fast = False,
) -> Request:
    """The request for a schedule for these tensors, none of which is empty.  ``fast`` has no effect
    but for f32 on a GPU with wgmma.  Raises ``UsageError`` for leading dimensions that no tensor
    has."""
    from gemmgen.explore.request import Request

    gemm = schedule.gemm
    shape = tuple(extents[letter] for letter in (*roles(gemm), *batches(gemm)))
    pitches: list[tuple[str, int]] = []
    for access in (gemm.a, gemm.b, gemm.c):
        view = views[access.tensor]
        rows = access.indices.index(matrix(access, gemm)[0])
        # Of one row the stride is not a pitch, but for the order it is that of more rows.
        many = view.shape[rows] > 1 or (
            schedule.same_bits is not None and view.strides[rows] >= view.shape[-1]
        )
        if many and rows < len(view.shape) - 1:
            pitches.append((access.tensor, view.strides[rows]))
    request = Request(schedule, shape, gpu, tuple(pitches))
    since = SINCE.get(request.atom or "", 0)
    if not has(schedule.target, since):  # the GPU's own instruction, newer than the schedule's
        request = replace(request, problem=replace(schedule, target=f"sm_{since}"))
    if fast:
        with suppress(UsageError):
            request.check_fast()
            request = replace(request, terms=allowed_terms(fast))
    return request


def nearest(
    known: Iterable[tuple[Emitted, Mapping[str, int]]], gemm: Gemm, extents: Mapping[str, int]
) -> tuple[Emitted, ...]:
    """The kernels for ``gemm``, by the distance of their extents from these."""

    def distance(found: tuple[Emitted, Mapping[str, int]]) -> float:
        return sum(abs(log(max(1, found[1][x]) / max(1, n))) for x, n in extents.items())

    same_gemm = (found for found in known if found[0].schedule.gemm == gemm)
    return tuple(dict.fromkeys(emitted for emitted, _ in sorted(same_gemm, key=distance)))
