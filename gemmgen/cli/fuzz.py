"""``gemmgen fuzz``: random legal schedules, each proved on the CPU."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gemmgen.base.errors import CannotCheck, UsageError
from gemmgen.base.source import counted
from gemmgen.cli import cluster_option, options
from gemmgen.cli.files import put
from gemmgen.cli.interruptions import interrupted_code, sigterm_raises

if TYPE_CHECKING:
    from gemmgen.fuzz.campaign import Limits, Tally

_REPLAY = re.compile(r"([0-9]{1,18}):([0-9]{1,9})", re.ASCII)


def _replay(text: str) -> tuple[int, int]:
    found = _REPLAY.fullmatch(text)
    if not found:
        raise click.BadParameter("a replay is SEED:INDEX, 1:42 say")
    return int(found[1]), int(found[2])


@click.command("fuzz")
@click.option(
    "--seed", type=click.IntRange(0, 10**18), default=1, help="Random seed; 1 by default."
)
@click.option("--budget", type=click.FloatRange(min=1), metavar="SECONDS", help="Ends after these.")
@click.option("--count", type=click.IntRange(1), help="Number of schedules to try.")
@click.option("--jobs", type=click.IntRange(1, 64), default=2, help="Processes; 2 by default.")
@click.option(
    "--without",
    multiple=True,
    metavar="WORD",
    help="No directive, or word of its arguments: split_k, tma. Repeatable.",
)
@click.option("--nvrtc", is_flag=True, help="Compile every tenth kernel for its target, too.")
@click.option("--coverage", is_flag=True, help="List the legal pairs that were not seen.")
@click.option(
    "--save", type=click.Path(file_okay=False, path_type=Path), help="Folder for small schedules."
)
@click.option("--replay", type=_replay, metavar="SEED:INDEX", help="This one schedule alone.")
@cluster_option.scheduler
@cluster_option.task_seconds(300.0, "a schedule")
@options.as_json
def command(
    seed: int,
    budget: float | None,
    count: int | None,
    jobs: int,
    without: tuple[str, ...],
    nvrtc: bool,
    coverage: bool,
    save: Path | None,
    replay: tuple[int, int] | None,
    scheduler: str | None,
    task_seconds: float,
    as_json: bool,
) -> None:
    """Prove random legal schedules at ragged shapes, for a minute by default.

    Schedules are drawn so that all pairs of directive values are covered soon.  Each is
    interpreted, and its text run on the CPU at four shapes in two orders of threads, with all
    accesses checked.  A failure is printed with the line that replays it and the smallest schedule
    that fails in the same way.  Exit code 0 if nothing failed, 1 if something did, 3 if the budget
    was too short for one schedule.

    With --scheduler each schedule is a task of a Dask worker; the report is in the order of the
    schedules.  If a worker ends, its schedule is tried once on another one.  A schedule that is
    then lost, or that takes longer than --task-seconds, is named in the report, and the exit code
    is not 0.
    """
    from gemmgen.fuzz import campaign, report

    cluster_option.check(scheduler, "jobs", "replay")

    if save is not None and not save.is_dir():
        raise UsageError(f"--save: there is no folder {click.format_filename(save)}")
    _check_words(without)
    _needs_compilers(nvrtc)
    if replay is not None:
        tally = _one(*replay, without, nvrtc)
        seed = replay[0]
    else:
        limits = campaign.Limits(count, budget if budget or count else 60.0)
        if scheduler is not None:
            tally = _on_cluster(scheduler, seed, limits, nvrtc, without, task_seconds)
        else:
            tally = campaign.run(
                seed, limits, jobs, compiled=nvrtc, without=without, progress=_Progress()
            )
    if save is not None:
        for path in report.saved(tally, save):
            click.echo(f"wrote {click.format_filename(path)}", err=True)
    put(report.as_json(tally, seed) if as_json else report.summary(tally, seed))
    if coverage and not as_json:
        put(report.coverage(tally))
    _exit(tally)


def _exit(tally: Tally) -> None:
    """Ends the command with its exit code."""
    if isinstance(tally.cause, KeyboardInterrupt):
        click.echo("\ninterrupted", err=True)
        click.get_current_context().exit(interrupted_code(tally.cause))
    if tally.found:
        click.get_current_context().exit(1)
    if tally.cause is not None:
        raise tally.cause
    if tally.lost:
        raise CannotCheck(f"{counted(len(tally.lost), 'schedule')} lost on workers, not proved")
    if not tally.schedules:
        raise CannotCheck(f"no schedule was proved in {tally.seconds:.0f} s: raise --budget")


def _on_cluster(
    address: str,
    seed: int,
    limits: Limits,
    nvrtc: bool,
    without: tuple[str, ...],
    task_seconds: float,
) -> Tally:
    from gemmgen.base.dask_client import connected
    from gemmgen.fuzz.cluster_trials import run_on_cluster

    with connected(address) as cluster, sigterm_raises():
        return run_on_cluster(
            cluster.outcomes,
            *(seed, limits, task_seconds),
            compiled=nvrtc,
            without=without,
            progress=_Progress(),
        )


def _check_words(without: tuple[str, ...]) -> None:
    """Refuses words that no directive is or takes."""
    from gemmgen.fuzz.factors import WORDS

    for word in without:
        if word not in WORDS:
            raise UsageError(f"--without: {word} is neither a directive nor a word of one")


def _needs_compilers(nvrtc: bool) -> None:
    """Raises ``CannotCheck`` if a compiler that every trial needs is missing."""
    if shutil.which("g++") is None:
        raise CannotCheck("fuzz runs kernels on the CPU, which needs g++; it is not installed")
    if nvrtc:
        from gemmgen.gpu.compiler import available

        missing = available()
        if missing:
            raise CannotCheck(missing)


def _one(seed: int, index: int, without: tuple[str, ...], nvrtc: bool) -> Tally:
    """Repeats one schedule, whose text is first printed to standard error."""
    from gemmgen.fuzz import campaign
    from gemmgen.fuzz.random_schedules import schedule_at

    click.echo(schedule_at(seed, index, without), err=True)
    return campaign.replay(seed, index, without, compiled=nvrtc)


class _Progress:
    """Progress on standard error: a line that is rewritten on a terminal, else periodic lines."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._next = 0.0
        self._reported = self._lost = 0

    def __call__(self, tally: Tally) -> None:
        from gemmgen.fuzz.report import failure_lines, lost_line

        for found in tally.found[self._reported :]:
            click.echo("\n".join(["", *failure_lines(found), ""]), err=True)
        for lost in tally.lost[self._lost :]:
            click.echo(f"\n{lost_line(lost)}", err=True)
        self._reported, self._lost = len(tally.found), len(tally.lost)
        if tally.seconds < self._next:
            return
        self._next = tally.seconds + (0.5 if self._terminal else 30.0)
        found = f", {len(tally.found)} failed" if tally.found else ""
        text = f"{tally.schedules} schedules, {tally.seconds:.0f} s{found}"
        click.echo(f"\r{text}" if self._terminal else text, err=True, nl=not self._terminal)
