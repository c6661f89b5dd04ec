"""300 random schedules on a GPU: right, and the bits of the CPU run (library functions aside)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from .campaign import GOOD, Task, Worker
from .conftest import CALLS

SEED, SCHEDULES, BATCH = 11, 300, 20


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    """A its own process: a kernel that loses the GPU fails its own test alone."""
    started = Worker()
    yield started
    started.end()


@pytest.mark.parametrize("first", range(0, SCHEDULES, BATCH))
def test_random_schedules_are_right_and_give_the_bits_of_the_cpu_run(
    first: int, worker: Worker, record_property: Callable[[str, object], None]
) -> None:
    results = [worker.judged(Task(SEED, at, host=True)) for at in range(first, first + BATCH)]
    wrong = [f"{r.task.replay}: {r.kind}: {r.detail}" for r in results if r.kind not in GOOD]
    assert not wrong, "\n".join(wrong)
    both, host_only = (sum(r.calls[side] for r in results) for side in (0, 1))
    record_property(CALLS, (both, host_only))
    assert both > 5 * host_only
