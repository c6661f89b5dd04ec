"""``gemmgen tune``: the fastest point of a search space, found by measuring."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gemmgen.base.errors import UsageError
from gemmgen.cli import gpu_option, options
from gemmgen.cli.files import name_of, put, read_schedule, shown_path, writable, write_file
from gemmgen.cli.shape_option import HELP, METAVAR, WrittenShape, resolve_all, shape
from gemmgen.gpu.gpus import Gpu

if TYPE_CHECKING:
    from gemmgen.explore.tune.search import SearchProgress
    from gemmgen.explore.tune.trials import Trial
    from gemmgen.explore.tune.tuner import Task, Tuned
    from gemmgen.explore.tune.workers import Workers

INTERRUPTED, TERMINATED = 130, 143
"""The exit codes after Ctrl-C and after SIGTERM."""


@click.command("tune")
@click.argument("file")
@click.option(
    "--shape",
    "shapes",
    type=shape,
    metavar=METAVAR,
    multiple=True,
    required=True,
    help=f"{HELP}; several are averaged.",
)
@click.option(
    "--seconds", type=click.FloatRange(min=5), default=300, help="In all; 300 by default."
)
@click.option(
    "--jobs", type=click.IntRange(1, 256), help="Processes that compile; one a CPU by default."
)
@click.option(
    "--seed", type=click.IntRange(0, 2**32 - 1), default=0, help="The random seed of the search."
)
@click.option("-o", "--output", metavar="OUT", help="A file for the schedule.")
@click.option(
    "--trials", metavar="FILE.jsonl", help="Append every trial to this file, a line each."
)
@click.option("--resume", is_flag=True, help="Continue from the file of --trials.")
@click.option(
    "--list",
    "--dry-run",
    "listed",
    is_flag=True,
    help="Show the legal points, best estimate first.",
)
@gpu_option.gpu
@options.arch
@options.settings
@options.as_json
def command(
    file: str,
    shapes: Sequence[WrittenShape],
    seconds: float,
    jobs: int | None,
    seed: int,
    output: str | None,
    trials: str | None,
    resume: bool,
    listed: bool,
    gpu: Gpu,
    arch: str | None,
    settings: Sequence[options.Setting],
    as_json: bool,
) -> None:
    """Find the fastest schedule of the search space FILE, a schedule with sets: tile m={64, 128}.

    The points that compile are counted first.  They are tried in the order of a cheap estimate and
    of the results so far, each checked before it is timed; the best are timed again, interleaved
    with cuBLAS.  The winner is printed as an ordinary schedule with its measurements.  Exit code 0
    with a winner, 1 if no point was right, 3 without a GPU.
    """
    from gemmgen.cli.progress import Bar
    from gemmgen.explore.tune.session import require_gpu, task_of
    from gemmgen.explore.tune.space import SearchSpace
    from gemmgen.explore.tune.workers import Workers

    _check_files(file, output, trials, resume)
    space = SearchSpace(read_schedule(file), tuple(settings), arch)
    wanted = tuple(dict.fromkeys(resolve_all(shapes, space.gemm)))
    if not listed:
        require_gpu(space)
    with Workers(jobs or os.cpu_count() or 1) as workers:
        with Bar("counting the legal points") as bar:
            task = task_of(space, wanted, workers, seconds=seconds, seed=seed, tick=bar)
        legal, refused = len(task.census.legal), task.census.refused.total()
        counts = f"{legal:,} legal schedules, {refused:,} refused"
        click.echo(f"{task.census.points:,} points: {counts}", err=True)
        if listed:
            _show(task, gpu, as_json)
            return
        tuned = _tuned(task, workers, trials, resume)
    _report(tuned, file, output, as_json)


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


def _tuned(task: Task, workers: Workers, trials: str | None, resume: bool) -> Tuned:
    from gemmgen.cli.progress import Bar
    from gemmgen.explore.tune.session import search

    path = None if trials is None else Path(trials)
    best: Trial | None = None

    def watch(progress: SearchProgress) -> None:
        nonlocal best
        best = progress.best or best
        bar(progress.done, progress.total, progress.stage, _speed(best) if best else "")

    try:
        with Bar("starting", lines=True) as bar, _sigterm_raises():
            return search(task, workers, path, resume=resume, watch=watch)
    except KeyboardInterrupt as ended:
        click.echo(_interrupted(best, trials), err=True)
        code = TERMINATED if isinstance(ended, Terminated) else INTERRUPTED
        click.get_current_context().exit(code)


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


class Terminated(KeyboardInterrupt):
    """SIGTERM was received; handled like Ctrl-C."""


@contextmanager
def _sigterm_raises() -> Generator[None]:
    """A context in which SIGTERM raises ``Terminated`` in the main thread."""

    def raise_it(*_: object) -> None:
        raise Terminated

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, raise_it)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
