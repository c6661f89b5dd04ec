"""``gemmgen tune --gemm``: fast schedules for a list of shapes, without a space file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click

from gemmgen.base.errors import UsageError
from gemmgen.base.output_file import shown_path, writable, write_file
from gemmgen.base.record import record
from gemmgen.cli.files import put, warnings_as_sentences
from gemmgen.cli.interruptions import interrupted_code, sigterm_raises
from gemmgen.cli.shape_option import Shape, WrittenShape, resolve
from gemmgen.cli.tune_options import NO_SHAPE
from gemmgen.gpu.gpus import Gpu
from gemmgen.ir.decompositions import Fast

if TYPE_CHECKING:
    from gemmgen.cli.progress import Bar
    from gemmgen.explore.autotune.shape_tuning import Tuning, Watch
    from gemmgen.explore.request import Request
    from gemmgen.explore.tune.search import SearchProgress

BUDGET = 60.0
"""Seconds by default."""


@record
class TuneRequest:
    """What is tuned: the options of the command."""

    gemm: str
    dtype: str
    epilogue: str | None
    ld: Mapping[str, int]
    written: tuple[WrittenShape, ...]
    listed_shapes: str | None
    """The file of --shapes."""
    fast: Fast
    same_bits: str | None

    def requests(self, shapes: Sequence[Shape], gpu: Gpu) -> tuple[Request, ...]:
        """One for each shape, on a GPU with these figures."""
        from gemmgen.explore.autotune.gpu_tuning import requests_of

        return requests_of(
            *(self.gemm, shapes, self.dtype, self.epilogue, self.ld, gpu),
            fast=self.fast,
            same_bits=self.same_bits,
        )

    def shapes(self) -> tuple[Shape, ...]:
        """Those of --shape, then those of the file; raises ``UsageError`` if there is none."""
        from gemmgen.cli.shapes_file import check_extents, read_shapes
        from gemmgen.explore.request import gemm_of
        from gemmgen.ir.launch_shape import spelled

        gemm = gemm_of(self.gemm)
        found = [resolve(one, gemm) for one in self.written]
        for sizes in found:
            check_extents(sizes, f"--shape {spelled(sizes)}: ")
        if self.listed_shapes is not None:
            found += read_shapes(self.listed_shapes, gemm)
        return tuple(dict.fromkeys(found))


def show_space(problem: TuneRequest, gpu: Gpu) -> None:
    """Writes the default space for the problem to standard output; of its shapes the first one
    counts, 4096 without one."""
    from gemmgen.explore.autotune.default_spaces import space_text
    from gemmgen.explore.suggest.choose import choose

    request = problem.requests(problem.shapes()[:1] or ((4096, 4096, 4096),), gpu)[0]
    put(space_text(choose(request, measured=False).schedule))


def tune_gemm(
    problem: TuneRequest,
    gpu: Gpu,
    *,
    named: bool,
    budget: float,
    jobs: int | None,
    cluster: tuple[str | None, str | None],
    output: str | None,
    store: bool,
    as_json: bool,
) -> None:
    """Tunes the shapes of ``problem``; writes the table, and a single shape's winner.

    ``cluster``: the values of --scheduler and --gpus.
    """
    from gemmgen.cli.cluster_option import gpu_workers
    from gemmgen.cli.progress import Bar
    from gemmgen.explore.autotune.gpu_tuning import tune_here
    from gemmgen.explore.autotune.keeping import keeper

    shapes = problem.shapes()
    if not shapes:
        raise UsageError(NO_SHAPE)
    if output not in (None, "-"):
        if len(shapes) > 1:
            raise UsageError(
                f"-o {shown_path(output)} has room for one schedule, and there are {len(shapes)} "
                "shapes: name one shape, or take the schedules from --json"
            )
        writable(output)

    with (
        warnings_as_sentences(),
        gpu_workers(*cluster) as gpus,
        Bar("starting", lines=True) as bar,
        sigterm_raises(),
    ):
        tuning = tune_here(
            lambda figures: problem.requests(shapes, figures),
            gpu,
            keeper(store),
            budget=budget,
            named=named,
            jobs=jobs,
            gpus=gpus,
            watch=lambda tuning: _watch(tuning, bar),
        )
    report(tuning, output, as_json)


def _watch(tuning: Tuning, bar: Bar) -> Watch:
    from gemmgen.ir.launch_shape import spelled

    def watch(at: int, progress: SearchProgress) -> None:
        result = tuning.results[at]
        best = "" if result.tflops is None else f"{result.tflops:.1f} TFLOP/s"
        stage = f"{spelled(result.request.shape)}: {progress.stage}"
        bar(progress.done, progress.total, stage, best)

    return watch


def report(tuning: Tuning, output: str | None, as_json: bool) -> None:
    """Writes the results, and ends the command with its exit code."""
    from gemmgen.analyze.plain_text import plain
    from gemmgen.explore.autotune import result_table

    for text, trial in tuning.wrong:
        click.echo("an error of gemmgen, please report it:", err=True)
        click.echo(f"  {trial.status}: {trial.reason}\n{text}", err=True)
    if tuning.cause is not None:
        click.echo("\ninterrupted", err=True)
    table = plain(result_table.section(tuning))
    texts = [
        result_table.schedule_text(result, tuning)
        for result in tuning.results
        if result.text is not None and (result.outcome == "proved" or tuning.cause is not None)
    ]
    if output not in (None, "-") and texts:
        write_file(output, texts[0])
    if as_json:
        put(json.dumps(result_table.as_json(tuning), indent=2) + "\n")
    elif len(tuning.results) == 1 and texts and output in (None, "-"):
        click.echo(table, err=True, nl=False)
        put(texts[0])
    else:
        put(table)
    code = interrupted_code(tuning.cause) if tuning.cause else 0 if tuning.complete else 1
    click.get_current_context().exit(code)
