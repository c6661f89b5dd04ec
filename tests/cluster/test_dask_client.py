"""Tasks on a Dask cluster whose workers are killed, hang and raise errors."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from gemmgen.base import dask_tasks
from gemmgen.base.cluster_tasks import ClusterTask, TaskOutcome
from gemmgen.base.dask_client import check_address, connected
from gemmgen.base.errors import UsageError

from . import local_workers as jobs
from .local_workers import local_workers, wait_for_workers

pytest.importorskip("distributed", reason="Dask is not installed")
pytestmark = pytest.mark.proof


@pytest.fixture(scope="module")
def cluster_of_two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with local_workers(tmp_path_factory.mktemp("dask")) as found:
        yield found


@pytest.fixture
def address(cluster_of_two: str) -> str:
    """A cluster of two workers, which an earlier test may have ended: others take their places."""
    wait_for_workers(cluster_of_two, 2)
    return cluster_of_two


def outcomes(
    address: str, *several: Callable[[], object], seconds: float = 60.0
) -> list[TaskOutcome[object]]:
    """Those of ``several`` tasks, each named by its number, in this order."""
    tasks = [ClusterTask(str(at), do, seconds) for at, do in enumerate(several)]
    with connected(address) as cluster, closing(cluster.outcomes(tasks)) as found:
        arrived = list(found)
    assert sorted(one.number for one in arrived) == list(range(len(several)))
    return sorted(arrived, key=lambda one: one.number)


def others(count: int = 8) -> list[partial[int]]:
    return [partial(jobs.double, number) for number in range(count)]


def check_others(found: list[TaskOutcome[object]]) -> None:
    assert [one.value for one in found] == [2 * number for number in range(len(found))]


def runs(note: Path) -> int:
    return len(note.read_text().splitlines())


def check_ended(note: Path) -> None:
    """Whether the process that wrote ``note`` ends."""
    (process,) = note.read_text().split()
    end = time.monotonic() + 30
    while Path(f"/proc/{process}").exists():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_values_arrive(address: str) -> None:
    check_others(outcomes(address, *others(12)))


def test_a_task_that_kills_its_worker_is_tried_twice_and_lost_alone(
    address: str, tmp_path: Path
) -> None:
    note = tmp_path / "note"
    *found, killer = outcomes(address, *others(), partial(jobs.killed, note))
    check_others(found)
    assert killer.lost.startswith("its workers ended: tcp://") and killer.lost.count("tcp://") == 2
    assert runs(note) == 2


def test_a_worker_that_is_killed_once_costs_nothing(address: str, tmp_path: Path) -> None:
    note = tmp_path / "note"
    one, *found = outcomes(address, partial(jobs.killed_once, note), *others())
    check_others(found)
    assert one.value == "survived" and runs(note) == 1


@pytest.mark.parametrize("hang", [jobs.hangs, jobs.holds_the_interpreter])
def test_a_task_that_hangs_is_lost_alone_and_its_worker_goes_on(
    hang: Callable[[Path], None], address: str, tmp_path: Path
) -> None:
    note, start = tmp_path / "note", time.monotonic()
    slow, *found = outcomes(address, partial(hang, note), *others(), seconds=2.0)
    check_others(found)
    assert slow.lost.startswith("no answer within 2 s on tcp://") and runs(note) == 1
    assert time.monotonic() - start < 60
    check_ended(note)


def test_the_errors_of_a_task_are_its_own(address: str) -> None:
    wrong, refused, *found = outcomes(address, jobs.raises, jobs.refuses, *others())
    check_others(found)
    assert wrong.lost == "RuntimeError: cudaErrorIllegalAddress"
    assert isinstance(refused.error, UsageError) and str(refused.error) == "no such thing"


def test_a_run_that_is_left_ends_what_hangs(address: str, tmp_path: Path) -> None:
    tasks = [ClusterTask("hang", partial(jobs.hangs, tmp_path / "note"), 600.0)]
    tasks += [ClusterTask("other", partial(jobs.double, 1), 60.0)]
    with connected(address) as cluster, closing(cluster.outcomes(tasks)) as found:
        assert next(found).value == 2
        while not (tmp_path / "note").exists():
            time.sleep(0.05)
    check_ended(tmp_path / "note")


def test_a_worker_with_threads_runs_one_task_at_a_time(tmp_path: Path) -> None:
    """The one that ends it is then known: the others go on elsewhere."""
    with local_workers(tmp_path, 1, threads_per_worker=4) as address:
        found = outcomes(address, *[partial(jobs.not_alone, 0.1)] * 6)
        assert [one.value for one in found] == [False] * 6
        note = tmp_path / "note"
        killer, *rest = outcomes(address, partial(jobs.killed, note), *others())
        check_others(rest)
        assert killer.lost and runs(note) == 2


def test_a_scheduler_that_allows_no_failures_costs_no_other_task(tmp_path: Path) -> None:
    import dask

    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        local_workers(tmp_path) as address,
    ):
        note = tmp_path / "note"
        killer, *found = outcomes(address, partial(jobs.killed, note), *others())
    check_others(found)
    assert killer.lost and runs(note) == 2


def refusal(address: str, **options: object) -> str:
    with pytest.raises(UsageError) as raised, connected(address, **options):  # type: ignore[arg-type]
        pass
    return str(raised.value)


def test_a_cluster_without_a_gpu_is_refused(address: str) -> None:
    said = refusal(address, gpu=True, within=0.5)
    assert "no worker with a GPU within 0 s" in said and "--resources GPU=1" in said


def test_a_worker_that_nothing_can_end_is_refused(tmp_path: Path) -> None:
    with local_workers(tmp_path, 1, processes=False, protocol="tcp") as address:
        assert "has no nanny" in refusal(address)


def test_other_sources_of_gemmgen_are_refused(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask_tasks, "sources", lambda: "others")
    with pytest.raises(UsageError, match=r"tcp://\S+ has other sources of gemmgen"):
        outcomes(address, *others(1))


def test_a_scheduler_that_does_not_answer_is_refused() -> None:
    said = refusal("tcp://127.0.0.1:9", within=0.5)
    assert said.startswith("--scheduler tcp://127.0.0.1:9: no scheduler answers within 0 s")


@pytest.mark.parametrize("right", ["tcp://a.b:8786", "10.0.0.1:1", "tls://[::1]:8786", "host:80"])
def test_addresses_are_accepted(right: str) -> None:
    check_address(right)


@pytest.mark.parametrize("wrong", ["", "host", "http://host:80", "tcp://host", "tcp://:80", "a:b"])
def test_other_words_are_no_addresses(wrong: str) -> None:
    with pytest.raises(UsageError, match="is not an address; write tcp://host:8786, say"):
        check_address(wrong)
