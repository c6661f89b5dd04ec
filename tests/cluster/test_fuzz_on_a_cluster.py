"""``gemmgen fuzz --scheduler``: the same report whatever the workers do."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections.abc import Generator, Iterable, Iterator

import pytest
from click.testing import CliRunner, Result

from gemmgen.base.cluster_tasks import ClusterTask, TaskOutcome
from gemmgen.base.errors import CannotCheck, UsageError
from gemmgen.cli import main
from gemmgen.fuzz import cluster_trials
from gemmgen.fuzz.campaign import Judged, Limits, Tally
from gemmgen.fuzz.cluster_trials import Trial, run_on_cluster
from gemmgen.fuzz.trial import Failure, Verdict

from .local_workers import local_workers, wait_for_workers


def fuzz(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["fuzz", *arguments])


class Workers:
    """Answers tasks backwards, as many as there are: ``broken`` of them are lost, ``failed`` are
    failures."""

    def __init__(self, broken: Iterable[int] = (), failed: Iterable[int] = (), ends_at: int = -1):
        self.broken, self.failed, self.ends_at = set(broken), set(failed), ends_at
        self.ended: BaseException = KeyboardInterrupt()

    def __call__(self, tasks: Iterable[ClusterTask[Trial]]) -> Generator[TaskOutcome[Trial]]:
        for number, task in reversed(list(enumerate(tasks))):
            if number == self.ends_at:
                raise self.ended
            if number in self.broken:
                yield TaskOutcome(number, task, lost="its workers ended: a, b")
                continue
            failure = Failure("C2", "race", "two writes") if number in self.failed else None
            verdict = Verdict(failure, runs=4)
            yield TaskOutcome(number, task, Judged(1, number, f"text {number}", verdict))


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_trials, "schedule_at", lambda *_: "text")
    monkeypatch.setattr("gemmgen.fuzz.campaign.blamed", lambda _, failure: failure)
    monkeypatch.setattr("gemmgen.fuzz.campaign.shrink", lambda text, failure, _: small(failure))


def small(failure: Failure) -> object:
    from gemmgen.fuzz.shrink import Small

    return Small("small", failure, 1)


def run(workers: Workers, count: int = 6) -> Tally:
    return run_on_cluster(workers, 1, Limits(count), 5.0)


@pytest.mark.usefixtures("drawn")
def test_results_are_in_the_order_of_the_schedules() -> None:
    tally = run(Workers(broken={1, 3}, failed={2, 4}))
    assert (tally.schedules, tally.runs, tally.cause) == (4, 16, None)
    assert [one.replay for one in tally.lost] == ["1:1", "1:3"]
    assert [(one.trial.index, one.small is not None) for one in tally.found] == [
        (2, True),
        (4, False),
    ]


@pytest.mark.usefixtures("drawn")
@pytest.mark.parametrize("ended", [KeyboardInterrupt(), CannotCheck("the scheduler has ended")])
def test_what_had_arrived_is_counted_when_a_campaign_is_interrupted(ended: BaseException) -> None:
    workers = Workers(broken={4}, failed={5}, ends_at=2)
    workers.ended = ended
    tally = run(workers)
    assert tally.cause is ended and tally.schedules == 2
    assert [one.trial.index for one in tally.found] == [5] and tally.lost[0].replay == "1:4"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--scheduler", "host"), "--scheduler: host is not an address"),
        (("--scheduler", "tcp://h:1", "--jobs", "2"), "--jobs is for a run on this machine"),
        (("--scheduler", "tcp://h:1", "--replay", "1:2"), "--replay is for a run on this machine"),
        (("--task-seconds", "9"), "--task-seconds goes with --scheduler"),
    ],
)
def test_options_that_do_not_go_together_are_one_error(
    arguments: tuple[str, ...], said: str
) -> None:
    done = fuzz(*arguments)
    assert done.exit_code == 2 and said in done.stderr


def test_without_dask_the_command_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from gemmgen.base import dask_client, dask_tasks

    def missing(name: str) -> object:
        raise ImportError(name)

    dask_tasks.module.cache_clear()
    monkeypatch.setattr("importlib.import_module", missing)
    try:
        with (
            pytest.raises(UsageError, match=r"pip install '.\[cluster\]'"),
            dask_client.connected("tcp://h:1"),
        ):
            pass
    finally:
        monkeypatch.undo()
        dask_tasks.module.cache_clear()


# On a cluster, whose workers import this file.


@pytest.fixture(scope="module")
def cluster_of_two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    pytest.importorskip("distributed", reason="Dask is not installed")
    if shutil.which("g++") is None:
        pytest.skip("runs kernels, with g++")
    with local_workers(tmp_path_factory.mktemp("dask")) as found:
        yield found


@pytest.fixture
def address(cluster_of_two: str) -> str:
    wait_for_workers(cluster_of_two, 2)
    return cluster_of_two


@pytest.mark.proof
def test_a_cluster_proves_what_one_machine_does(address: str) -> None:
    here = json.loads(fuzz("--count", "2", "--jobs", "1", "--json").stdout)
    done = fuzz("--count", "2", "--scheduler", address, "--json")
    assert done.exit_code == 0, done.stderr
    there = json.loads(done.stdout)
    del here["seconds"], there["seconds"]
    assert here == there and there["schedules"] == 2


def fragile(seconds: float, seed: int, index: int, *more: object) -> Trial:
    """In the place of a trial: some schedules end their process, others never end."""
    if index == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    if index == 3:
        time.sleep(600)
    return Judged(seed, index, str(more[0]), Verdict(runs=4))


@pytest.mark.proof
def test_a_killed_worker_and_a_hanging_one_lose_their_schedules_alone(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_trials, "judged_within", fragile)
    done = fuzz("--count", "8", "--scheduler", address, "--task-seconds", "3")
    assert done.exit_code == 3
    assert done.stderr.endswith("gemmgen: 2 schedules lost on workers, not proved\n")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("seed 1: 6 schedules, 24 runs")
    first, second = (line for line in lines if line.startswith("gemmgen fuzz --replay"))
    assert first.startswith("gemmgen fuzz --replay 1:1   # lost: its workers ended: tcp://")
    assert second.startswith("gemmgen fuzz --replay 1:3   # lost: no answer within 3 s on tcp://")
