"""``ClusterRunner``: what each worker is asked, and what a lost task costs."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from gemmgen.base.cluster_tasks import ClusterTask, TaskOutcome
from gemmgen.base.dask_client import connected
from gemmgen.base.errors import CannotCheck, UsageError
from gemmgen.explore.tune import cluster_runner
from gemmgen.explore.tune.cluster_runner import ClusterRunner, MeasuredAnswer
from gemmgen.explore.tune.measuring import Candidate, DeviceInfo, Rejection, Screen
from gemmgen.gpu.gpus import GPUS
from gemmgen.gpu.store import Stored
from tests.tune import fakes

from .local_workers import local_workers


@pytest.fixture(autouse=True)
def no_runner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_runner, "_runners", {})


@pytest.fixture
def candidates(tmp_path: Path) -> list[Candidate]:
    files = Stored(tmp_path / "a.cubin", tmp_path / "a.cu")
    for path in (files.cubin, files.source):
        path.write_bytes(path.name.encode())
    return [Candidate(n, fakes.interface(), "sm_80", files) for n in range(fakes.FEW)]


@dataclass
class LocalAnswers:
    """Three workers in this process, whose answers arrive backwards.  A task with a kernel of
    ``fatal`` is lost."""

    fatal: frozenset[int] = frozenset()
    names: list[str] = field(default_factory=list)

    def count(self) -> int:
        return 3

    def outcomes(
        self, tasks: Iterable[ClusterTask[MeasuredAnswer]]
    ) -> Generator[TaskOutcome[MeasuredAnswer]]:
        for number, task in reversed(list(enumerate(tasks))):
            self.names.append(task.name)
            numbers = {int(word) for word in task.name.replace(",", "").split()[1:]}
            if numbers & self.fatal:
                yield TaskOutcome(number, task, lost="its workers ended: a, b")
                continue
            try:
                yield TaskOutcome(number, task, task.do())
            except CannotCheck as error:
                yield TaskOutcome(number, task, error=error)


MAKE = partial(fakes.FragileRunner, frozenset())


def test_checks_and_first_timings_are_shared_and_races_are_not(
    candidates: list[Candidate],
) -> None:
    workers = LocalAnswers()
    runner = ClusterRunner(workers, MAKE)
    assert runner.device_info == fakes.HERE
    assert runner.check(candidates[:7]) == (None,) * 7
    screened = runner.time(candidates[:5], 3, Screen(1.5))
    raced = runner.time(candidates[:5], 3)
    assert [reading.number for reading in screened] == [0, 1, 2, 3, 4]
    assert [reading.number for reading in raced] == [0, 1, 2, 3, 4]
    assert runner.prove(candidates[2], MAKE().by_number[2].text) is None
    assert workers.names[1:] == [
        *("check 6", "check 3, 4, 5", "check 0, 1, 2"),
        *("time 4", "time 2, 3", "time 0, 1"),
        "time 0, 1, 2, 3, 4",
        "prove 2",
    ]


def test_a_lost_task_is_repeated_kernel_by_kernel(candidates: list[Candidate]) -> None:
    runner = ClusterRunner(LocalAnswers(frozenset({4})), MAKE)
    crashed = Rejection("crashed", "its workers ended: a, b")
    assert runner.check(candidates[:6]) == (None, None, None, None, crashed, None)
    found = runner.time(candidates[:6], 3)
    assert [(one.number, one.finding) for one in found if one.finding] == [(4, crashed)]
    assert all(one.ms for one in found if not one.finding)
    assert runner.prove(candidates[4], "") == crashed


def no_gpu() -> fakes.FakeRunner:
    raise UsageError("this machine has no NVIDIA GPU")


def test_a_worker_without_a_gpu_says_so() -> None:
    with pytest.raises(CannotCheck, match="has no NVIDIA GPU"):
        print(ClusterRunner(LocalAnswers(), no_gpu).device_info)


def test_different_gpus_are_refused(
    candidates: list[Candidate], monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = ClusterRunner(LocalAnswers(), MAKE)
    assert runner.device_info
    other = DeviceInfo("Other GPU", "sm_90", GPUS["H200"])
    monkeypatch.setattr(fakes, "HERE", other)
    with pytest.raises(UsageError, match="different GPUs, Fake GPU and Other GPU, whose times"):
        runner.check(candidates)


# On a cluster, whose workers import this file.


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    pytest.importorskip("distributed", reason="Dask is not installed")
    with local_workers(tmp_path_factory.mktemp("dask"), resources={"GPU": 1}) as found:
        yield found


@pytest.mark.proof
def test_kernels_that_end_spoil_or_block_a_worker_are_lost_alone(
    address: str, candidates: list[Candidate]
) -> None:
    """4 ends its process, 7 raises an error of CUDA, 5 does not end."""
    make = partial(fakes.FragileRunner, frozenset({4, 7}), frozenset({5}))
    with connected(address, gpu=True) as workers:
        runner = ClusterRunner(workers, make, seconds=4.0)
        assert runner.device_info == fakes.HERE
        assert runner.check(candidates) == (None,) * len(candidates)
        found = runner.time(candidates, 1, Screen(1.5))
    assert [one.number for one in found] == list(range(fakes.FEW))
    lost = {one.number: one.finding for one in found if one.finding}
    assert {number: one.status for number, one in lost.items()} == dict.fromkeys(
        (4, 5, 7), "crashed"
    )
    assert lost[4].reason.startswith("its workers ended: tcp://")
    assert lost[5].reason.startswith("no answer within 4 s on tcp://")
    assert lost[7].reason == "RuntimeError: cudaErrorIllegalAddress"
    assert all(one.ms for one in found if not one.finding)
