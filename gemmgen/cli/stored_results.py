"""The stored results of ``gemmgen cache``: the database, filters and a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby

from gemmgen.analyze.section import Section
from gemmgen.base import caches
from gemmgen.base.errors import UsageError
from gemmgen.base.source import Source, counted
from gemmgen.base.units import duration, significant
from gemmgen.cli.shape_option import WrittenShape, resolve
from gemmgen.explore.request import gemm_of
from gemmgen.explore.results.canonical_names import canonical
from gemmgen.explore.results.database import Database
from gemmgen.explore.results.freshness import stale
from gemmgen.explore.results.measured_result import MeasuredResult
from gemmgen.explore.results.results_store import Results
from gemmgen.gpu.gpu_names import same_gpu
from gemmgen.ir.launch_shape import spelled
from gemmgen.language import parse_schedule
from gemmgen.schedule.model import Gemm, Schedule

HEADER = ("shape", "time", "TFLOP/s", "of vendor", "date", "by", "gemmgen", "driver", "CUDA")


def stored() -> Database:
    """The user's; raises ``UsageError`` if there can be none."""
    found = Results.open().database
    if found is None:
        if not caches.enabled():
            raise UsageError("GEMMGEN_CACHE=0 disables the cache, in which results are stored")
        raise UsageError(
            "results are stored in $XDG_CACHE_HOME/gemmgen (~/.cache/gemmgen by default), which "
            "can't be written or is not this user's alone"
        )
    return found


def matching(
    results: Iterable[MeasuredResult],
    gpu: str | None,
    gemm: str | None,
    wanted: WrittenShape | None,
) -> list[MeasuredResult]:
    """The results that match all filters that are given."""
    line = None if gemm is None else canonical(Schedule(gemm_of(gemm))).gemm
    return [
        result
        for result in results
        if (gpu is None or same_gpu(result.machine.gpu, gpu))
        and (line is None or _gemm(result.problem.text) == line)
        and (wanted is None or _is_at(result, wanted))
    ]


def _is_at(result: MeasuredResult, wanted: WrittenShape) -> bool:
    try:
        return resolve(wanted, _gemm(result.problem.text)) == result.problem.shape
    except UsageError:  # a shape of other letters
        return False


@lru_cache(1024)
def _gemm(problem: str) -> Gemm:
    return parse_schedule(Source(problem)).gemm


def table(results: Sequence[MeasuredResult], check: bool) -> Iterator[Section]:
    """A section for each product and GPU; ``check``: stale results are marked."""
    if not results:
        yield Section("no results", (), ())
        return

    def of(result: MeasuredResult) -> tuple[str, str]:
        return result.problem.text, result.machine.gpu

    for (problem, gpu), each in groupby(sorted(results, key=of), of):
        rows = tuple(_row(result, check) for result in sorted(each, key=_order))
        lines = "; ".join(" ".join(line.split()) for line in problem.splitlines())
        title = f"{lines.removeprefix('gemm ')} on {gpu}: {counted(len(rows), 'result')}"
        yield Section(title, (*HEADER, "") if check else HEADER, rows)


def _order(result: MeasuredResult) -> tuple[object, ...]:
    return result.problem.shape, result.problem.pitches, result.seconds, result.schedule


def _row(result: MeasuredResult, check: bool) -> tuple[str, ...]:
    share = "-" if result.vendor is None else f"{result.vendor / result.seconds:.3f}"
    pitches = zip(("lda", "ldb", "ldc"), result.problem.pitches, strict=True)
    shape = " ".join(
        [spelled(result.problem.shape), *(f"{name}={size}" for name, size in pitches if size)]
    )
    row = (
        shape,
        duration(result.seconds),
        significant(result.tflops),
        share,
        result.date[:10],
        result.origin,
        result.version,
        result.machine.driver or "-",
        result.machine.cuda or "-",
    )
    return (*row, stale(result) and "stale") if check else row
