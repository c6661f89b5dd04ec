"""The rules of tasks on a cluster, with a cluster that does what a test says."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field

import pytest

from gemmgen.base.cluster_tasks import (
    AHEAD,
    PATIENCE,
    SUBMISSIONS,
    Answered,
    Began,
    ClusterTask,
    Ended,
    TaskEvent,
    TaskOutcome,
    TaskRun,
)
from gemmgen.base.errors import CannotCheck, UsageError


@dataclass
class FakeService:
    """Calls a task when it is submitted, unless ``script`` has the events of its number, for each
    submission.  A second passes with each wait."""

    script: dict[int, list[list[TaskEvent]]] = field(default_factory=dict)
    now: float = 0.0
    here: Set[str] = frozenset({"a", "b"})
    log: list[tuple[str, object]] = field(default_factory=list)
    pending: list[TaskEvent] = field(default_factory=list)
    most: int = 0
    left: int = 0

    def workers(self) -> Set[str]:
        return self.here

    def submit(self, number: int, do: Callable[[], object]) -> None:
        self.log.append(("submit", number))
        self.left += 1
        self.most = max(self.most, self.left)
        scripted = self.script.get(number)
        if scripted:
            self.pending += scripted.pop(0)
        else:
            self.pending += [Began(number, "a"), Answered(number, do())]

    def events(self, seconds: float) -> Sequence[TaskEvent]:
        if seconds and not self.pending:
            self.now += 1.0
        found, self.pending = (self.pending, []) if seconds else ([], self.pending)
        self.left -= sum(not isinstance(event, Began) for event in found)
        return found

    def cancel(self, number: int) -> None:
        self.log.append(("cancel", number))

    def stop(self, numbers: Sequence[int]) -> Sequence[str]:
        self.log += [("cancel", number) for number in numbers]
        return ["b"]

    def restart(self, worker: str) -> None:
        self.log.append(("restart", worker))


def run(service: FakeService, count: int, *, spoils: bool = False) -> dict[int, TaskOutcome[int]]:
    tasks = [
        ClusterTask(f"task {n}", lambda n=n: 10 * n, seconds=5.0, spoils=spoils)
        for n in range(count)
    ]
    outcomes = list(TaskRun(service, tasks, lambda: service.now).outcomes())
    assert len({one.number for one in outcomes}) == len(outcomes) == count
    return {one.number: one for one in outcomes}


def lost(found: dict[int, TaskOutcome[int]]) -> dict[int, str]:
    return {number: one.lost for number, one in found.items() if one.lost}


def test_each_task_has_its_value_and_few_are_in_flight() -> None:
    service = FakeService()
    found = run(service, 20)
    assert {number: one.value for number, one in found.items()} == {n: 10 * n for n in range(20)}
    assert service.most == AHEAD * 2 and not lost(found)


def test_a_task_over_its_limit_is_lost_alone_and_its_worker_restarted() -> None:
    service = FakeService({1: [[Began(1, "b")]]})
    found = run(service, 4)
    assert lost(found) == {1: "no answer within 5 s on b"}
    assert [one for one in service.log if one[0] != "submit"] == [("cancel", 1), ("restart", "b")]


def test_the_time_in_a_queue_does_not_count() -> None:
    service = FakeService({0: [[]]})
    outcomes = TaskRun(service, [ClusterTask("a", int, 5.0)], lambda: service.now).outcomes()
    service.pending = []
    for _ in range(50):
        service.now += 1.0
    service.pending = [Began(0, "a"), Answered(0, 7)]
    assert next(outcomes).value == 7


def test_the_time_on_a_worker_that_ended_does_not_count() -> None:
    class Slow(FakeService):
        def events(self, seconds: float) -> Sequence[TaskEvent]:
            if self.now == 20.0:
                self.pending = [Began(0, "b"), Answered(0, 7)]
            return super().events(seconds)

    service = Slow({0: [[Began(0, "gone")]]})
    assert run(service, 1)[0].value == 7


def test_a_task_whose_worker_ended_twice_is_lost_by_name() -> None:
    service = FakeService({2: [[Began(2, "a"), Ended(2, ("a", "b"))]]})
    found = run(service, 4)
    assert lost(found) == {2: "its workers ended: a, b"}
    assert found[2].task.name == "task 2" and service.log.count(("submit", 2)) == 1


def test_a_task_that_a_scheduler_gives_up_early_is_submitted_again() -> None:
    """One that allows no failures gives up a task that ran once, or waited where one ended."""
    service = FakeService({0: [[Ended(0, ())]], 1: [[Ended(1, ("a",))], [Ended(1, ("a", "b"))]]})
    found = run(service, 3)
    assert found[0].value == 0 and lost(found) == {1: "its workers ended: a, b"}


def test_a_task_that_no_worker_lives_to_begin_is_lost() -> None:
    service = FakeService({0: [[Ended(0, ())]] * SUBMISSIONS})
    assert lost(run(service, 2)) == {0: "its workers ended"}
    assert service.log.count(("submit", 0)) == SUBMISSIONS


def test_errors_of_users_are_values_and_others_lose_the_task() -> None:
    wrong = UsageError("no such thing")
    service = FakeService({0: [[Answered(0, error=wrong)]], 1: [[Answered(1, error=KeyError(1))]]})
    found = run(service, 3)
    assert found[0].error is wrong and lost(found) == {1: "KeyError: 1"}
    assert all(what == "submit" for what, _ in service.log)


def test_an_error_that_spoils_a_process_restarts_its_worker() -> None:
    service = FakeService({0: [[Began(0, "b"), Answered(0, error=RuntimeError("illegal"))]]})
    assert lost(run(service, 1, spoils=True)) == {0: "RuntimeError: illegal"}
    assert ("restart", "b") in service.log


def test_a_run_that_is_closed_cancels_what_runs() -> None:
    service = FakeService({1: [[Began(1, "b")]]})
    outcomes = TaskRun(
        service, [ClusterTask(str(n), int, 5.0) for n in range(9)], lambda: service.now
    ).outcomes()
    next(outcomes)
    outcomes.close()
    assert service.log[-4:] == [("cancel", 1), ("cancel", 2), ("cancel", 3), ("restart", "b")]


def test_a_cluster_without_workers_is_given_up() -> None:
    service = FakeService({0: [[]]}, here=frozenset())
    with pytest.raises(CannotCheck, match="has had no worker for 60 s"):
        run(service, 1)
    assert service.now > PATIENCE
