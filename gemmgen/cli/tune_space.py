"""``gemmgen tune FILE``: the fastest point of a search space, found by measuring."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gemmgen.base.errors import UsageError
from gemmgen.base.output_file import shown_path, writable, write_file
from gemmgen.base.units import numeral
from gemmgen.cli import cluster_option
from gemmgen.cli.files import name_of, put, read_schedule, warnings_as_sentences
from gemmgen.cli.interruptions import interrupted_code, sigterm_raises
from gemmgen.cli.shape_option import WrittenShape, resolve_all
from gemmgen.cli.tune_options import NO_SHAPE, Given
from gemmgen.gpu.gpus import Gpu
from gemmgen.schedule.model import Gemm

if TYPE_CHECKING:
    from gemmgen.explore.tune.cluster_runner import GpuWorkers
    from gemmgen.explore.tune.search import SearchProgress
    from gemmgen.explore.tune.trials import Trial
    from gemmgen.explore.tune.tuner import Task, Tuned
    from gemmgen.explore.tune.workers import Workers

SECONDS, LEAST = 300.0, 5.0
"""Of the search by default, and at least."""


def tune_space(file: str, given: Given) -> None:
    """The command with a space file."""
    from gemmgen.cli.progress import Bar
    from gemmgen.explore.autotune.keeping import keep_winner
    from gemmgen.explore.tune.session import require_gpu, task_of
    from gemmgen.explore.tune.space import SearchSpace
    from gemmgen.explore.tune.workers import Workers

    output, trials, resume = given["output"], given["trials"], given["resume"]
    _check_files(file, output, trials, resume)
    space = SearchSpace(read_schedule(file), tuple(given["settings"]), given["arch"])
    wanted = _wanted(given["shapes"], given["listed_shapes"], space.gemm)
    seconds = given["budget"] or SECONDS
    if seconds < LEAST:
        least = f"the search of a space takes {numeral(LEAST)} s or more"
        raise UsageError(f"--budget {numeral(seconds)}: {least}")
    cluster = given["scheduler"], given["gpus"]
    if given["listed"]:
        cluster_option.check_unmeasured("--list")
    elif not any(cluster):
        require_gpu(space)
    with Workers(given["jobs"] or os.cpu_count() or 1) as workers:
        with Bar("counting the legal points") as bar:
            task = task_of(space, wanted, workers, seconds=seconds, seed=given["seed"], tick=bar)
        legal, refused = len(task.census.legal), task.census.refused.total()
        counts = f"{legal:,} legal schedules, {refused:,} refused"
        click.echo(f"{task.census.points:,} points: {counts}", err=True)
        if given["listed"]:
            _show(task, given["gpu"], given["as_json"])
            return
        with cluster_option.gpu_workers(*cluster) as gpus:
            tuned = _tuned(task, workers, trials, resume, gpus)
    if given["store"]:
        with warnings_as_sentences():
            keep_winner(tuned)
    _report(tuned, file, output, given["as_json"])


def _wanted(
    shapes: Sequence[WrittenShape], listed: str | None, gemm: Gemm
) -> tuple[tuple[int, ...], ...]:
    """The shapes of the options, each once; raises ``UsageError`` if there is none."""
    from gemmgen.cli.shapes_file import read_shapes

    found = [*resolve_all(shapes, gemm), *(read_shapes(listed, gemm) if listed else ())]
    if not found:
        raise UsageError(NO_SHAPE)
    return tuple(dict.fromkeys(found))


def _check_files(file: str, output: str | None, trials: str | None, resume: bool) -> None:
    written = [writable(output, file)] if output not in (None, "-") else []
    if trials is not None:
        if writable(trials, file) in written:
            raise UsageError("-o and --trials name the same file: the schedule needs its own")
    elif resume:
        raise UsageError("--resume continues from a file of trials: name it with --trials")


def _show(task: Task, gpu: Gpu, as_json: bool) -> None:
    from gemmgen.analyze.plain_text import plain
    from gemmgen.explore.tune import listing

    if as_json:
        put(json.dumps(listing.as_json(task, gpu), indent=2) + "\n")
    else:
        put("\n".join(map(plain, listing.sections(task, gpu))))


def _tuned(
    task: Task, workers: Workers, trials: str | None, resume: bool, gpus: GpuWorkers | None
) -> Tuned:
    from gemmgen.cli.progress import Bar
    from gemmgen.explore.tune.session import search

    path = None if trials is None else Path(trials)
    best: Trial | None = None

    def watch(progress: SearchProgress) -> None:
        nonlocal best
        best = progress.best or best
        bar(progress.done, progress.total, progress.stage, _speed(best) if best else "")

    try:
        with Bar("starting", lines=True) as bar, sigterm_raises():
            return search(task, workers, path, resume=resume, gpus=gpus, watch=watch)
    except KeyboardInterrupt as ended:
        click.echo(_interrupted(best, trials), err=True)
        click.get_current_context().exit(interrupted_code(ended))


def _interrupted(best: Trial | None, trials: str | None) -> str:
    """The message of an interrupted search: its best trial, which no race or proof has
    confirmed."""
    kept = f"; {shown_path(trials)} has the trials, --resume continues" if trials else ""
    if best is None:
        return f"\ninterrupted{kept}"
    times = " ".join(f"{ms:.4f}" for ms in best.ms)
    return f"\ninterrupted{kept}\nthe best so far, not yet proved: {_options(best)}: {times} ms"


def _speed(trial: Trial) -> str:
    ms = " ".join(f"{ms:.4f}" for ms in trial.ms)
    share = " ".join(f"{share:.1%}" for share in trial.share or ())
    return f"{ms} ms = {share} of cuBLAS" if share else f"{ms} ms"


def _options(trial: Trial) -> str:
    """A point as ``--set`` options."""
    return " ".join(f"--set {key}={value}" for key, value in trial.settings)


def _report(tuned: Tuned, file: str, output: str | None, as_json: bool) -> None:
    """Writes the winner and the table; errors of gemmgen are reported to standard error."""
    from gemmgen.analyze.plain_text import plain
    from gemmgen.explore.tune import winner

    for trial in tuned.wrong:
        click.echo(f"an error of gemmgen, please report it: {_options(trial)}", err=True)
        click.echo(f"  {trial.status}: {trial.reason}", err=True)
    table = plain(winner.section(tuned))
    if tuned.finals.winner is None:
        click.echo(f"{table}no schedule of {name_of(file)} was right and could be timed", err=True)
    elif output not in (None, "-"):
        write_file(output, winner.schedule_text(tuned), file)
        if not as_json:
            put(table)
    elif not as_json:
        click.echo(table, err=True, nl=False)
        put(winner.schedule_text(tuned))
    if as_json:
        put(json.dumps(winner.as_json(tuned), indent=2) + "\n")
    click.get_current_context().exit(0 if tuned.finals.winner else 1)
