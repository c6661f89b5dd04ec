"""A campaign whose trials are tasks of a cluster's workers.

Schedules are drawn here: each depends on those before it, and the same seed gives the same ones on
any cluster.  Results are counted in the order of the schedules, so that the report and what is
shrunk do not depend on the workers.
"""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, suppress
from functools import partial

from gemmgen.base.cluster_tasks import ClusterTask, TaskOutcome, TasksInOrder
from gemmgen.base.errors import CannotCheck
from gemmgen.fuzz.campaign import (
    COMPILED,
    Judged,
    Limits,
    LostTrial,
    Tally,
    Words,
    count,
    replay_of,
)
from gemmgen.fuzz.dice import Dice
from gemmgen.fuzz.random_schedules import schedule_at
from gemmgen.fuzz.trial import Late, judge

Trial = Judged | None
"""None for a trial that the end of the campaign's time ended."""
RunTasks = Callable[[Iterable[ClusterTask[Trial]]], Generator[TaskOutcome[Trial]]]
"""What runs tasks: ``Cluster.outcomes``."""


def run_on_cluster(
    run_tasks: RunTasks,
    seed: int,
    limits: Limits,
    task_seconds: float,
    *,
    compiled: bool = False,
    without: Words = (),
    progress: Callable[[Tally], None] = lambda _: None,
) -> Tally:
    """``campaign.run`` on a cluster; a schedule that takes longer than ``task_seconds`` is lost.

    If Ctrl-C or the loss of the cluster ends it, the tally so far has its ``cause``.
    """
    tally, start = Tally(), time.time()
    deadline = math.inf if limits.seconds is None else start + limits.seconds

    def tasks() -> Iterator[ClusterTask[Trial]]:
        for index in limits.indices():
            left = deadline - time.time()
            if left <= 0:
                return
            text = schedule_at(seed, index, without)
            both = compiled and index % COMPILED == 0
            do = partial(judged_within, left, seed, index, text, both, without)
            yield ClusterTask(f"{seed}:{index}", do, task_seconds)

    def add(outcome: TaskOutcome[Trial], until: float) -> None:
        if outcome.error is not None:
            raise outcome.error
        if outcome.lost:
            replay = replay_of(seed, outcome.number, without)
            tally.lost.append(LostTrial(replay, outcome.lost))
        elif outcome.value is not None:
            count(tally, outcome.value, until)
        tally.seconds = time.time() - start
        progress(tally)

    ordered = TasksInOrder[Trial]()
    try:
        with closing(run_tasks(tasks())) as outcomes:
            for outcome in outcomes:
                for one in ordered.after(outcome):
                    add(one, deadline)
    except (KeyboardInterrupt, CannotCheck) as ended:
        tally.cause = ended
        for one in ordered.rest():
            if one.error is None:
                add(one, 0.0)  # nothing is shrunk any more
    tally.seconds = time.time() - start
    return tally


def judged_within(
    seconds: float, seed: int, index: int, text: str, compiled: bool, without: Words
) -> Trial:
    """On a worker: the trial of a drawn schedule; None if it does not end within ``seconds``."""
    if shutil.which("g++") is None:
        raise CannotCheck("fuzz runs kernels on the CPU, which needs g++; a worker has none")
    with suppress(Late):
        dice, deadline = Dice(seed, index, "cases"), time.time() + seconds
        verdict = judge(text, dice, compiled=compiled, deadline=deadline)
        return Judged(seed, index, text, verdict, without)
    return None
