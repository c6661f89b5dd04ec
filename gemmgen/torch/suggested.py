"""Schedules of ``gemmgen.suggest`` for operators whose own schedule has no directives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import log, prod

from gemmgen.base.errors import UsageError
from gemmgen.calling.arguments import View
from gemmgen.gpu.gpus import Gpu
from gemmgen.pipeline import Emitted
from gemmgen.schedule.formatting import format_schedule
from gemmgen.schedule.model import Gemm, Schedule
from gemmgen.schedule.roles import batches, matrix, roles
from gemmgen.torch.siblings import compiled

LEAST = 2**21
"""Multiply-adds of f32 or f64 below which launch overhead hides the gain of a better schedule."""


def suggested(
    schedule: Schedule, extents: Mapping[str, int], views: Mapping[str, View], gpu: Gpu
) -> Emitted | None:
    """The kernel that ``suggest`` chooses for these tensors, without its ``assume`` lines, so that
    it runs at other extents too; None for small products that tensor cores don't multiply."""
    gemm = schedule.gemm
    shape = tuple(extents[letter] for letter in (*roles(gemm), *batches(gemm)))
    if prod(shape) < LEAST and dict(schedule.dtypes)[gemm.a.tensor] in ("f32", "f64"):
        return None
    from gemmgen.explore.suggest.choose import choose
    from gemmgen.explore.suggest.request import Request

    pitches: list[tuple[str, int]] = []
    for access in (gemm.a, gemm.b, gemm.c):
        view = views[access.tensor]
        rows = access.indices.index(matrix(access, gemm)[0])
        if view.shape[rows] > 1 and rows < len(view.shape) - 1:
            pitches.append((access.tensor, view.strides[rows]))
    try:
        found = choose(Request(schedule, shape, gpu, tuple(pitches))).emitted
    except UsageError:  # no form for the types on this GPU
        return None
    if not found.schedule.assumes:
        return found
    return compiled(format_schedule(replace(found.schedule, assumes=())))


def nearest(
    known: Iterable[tuple[Emitted, Mapping[str, int]]], gemm: Gemm, extents: Mapping[str, int]
) -> tuple[Emitted, ...]:
    """The kernels for ``gemm``, by the distance of their extents from these."""

    def distance(found: tuple[Emitted, Mapping[str, int]]) -> float:
        return sum(abs(log(max(1, found[1][x]) / max(1, n))) for x, n in extents.items())

    same_gemm = (found for found in known if found[0].schedule.gemm == gemm)
    return tuple(dict.fromkeys(emitted for emitted, _ in sorted(same_gemm, key=distance)))
