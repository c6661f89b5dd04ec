"""``python -m tests.gpu.campaign``: random schedules on a GPU, each in a process that may lose it.

A kernel that raises an illegal instruction or writes out of bounds leaves its process without a
usable GPU, and one that hangs blocks it.  So each schedule runs in a worker process, which is
replaced after either; the others go on, and the schedule is reported.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import chain

from gemmgen.base.processes import end_with_parent, kill
from gemmgen.fuzz.dice import Dice
from gemmgen.fuzz.random_schedules import schedule_at
from gemmgen.fuzz.trial import ARCH, compile_text
from gemmgen.fuzz.trial_calls import cases

from .sides import OnDevice, Sides, WrongResult

SECONDS = 90.0
"""After which a schedule hangs: drawing, compiling and running one takes a few seconds."""
GOOD = ("right", "refused")
"""Results that are not failures."""


@dataclass(frozen=True)
class Task:
    """The ``index``-th schedule of a seed; ``host``: it runs on the CPU as well, for its bits."""

    seed: int
    index: int
    host: bool = False

    @property
    def replay(self) -> str:
        return f"gemmgen fuzz --replay {self.seed}:{self.index}"


@dataclass(frozen=True)
class Result:
    """``kind``: right, refused, wrong (a result), error (an exception), lost (the GPU or the
    process), hangs.  ``calls``: made on the GPU, and too large for it."""

    task: Task
    kind: str
    detail: str = ""
    calls: tuple[int, int] = (0, 0)


def judged(task: Task) -> Result:
    """Runs in a worker, which is used again after a good result alone."""
    from cupy_backends.cuda.api import driver, runtime  # pyright: ignore[reportMissingImports]

    emitted = compile_text(schedule_at(task.seed, task.index))
    if emitted is None:
        return Result(task, "refused")
    own = emitted.target.endswith("a")
    try:
        sides = Sides(emitted, emitted.target if own else ARCH, host=task.host)
        chosen = (
            replace(case, order="ascending", skips_product=False)
            for case in cases(emitted, Dice(task.seed, task.index))
        )
        for case in dict.fromkeys(chosen):
            sides.check(case, task.replay)
        sides.close()
        OnDevice.finish()
    except (runtime.CUDARuntimeError, driver.CUDADriverError) as lost:
        return Result(task, "lost", str(lost))
    except WrongResult as wrong:
        return Result(task, "wrong", str(wrong))
    except Exception as error:
        return Result(task, "error", f"{type(error).__name__}: {error}")
    return Result(task, "right", calls=(sides.both, sides.host_only))


class Worker:
    """A process that judges schedules one by one, and is replaced if it can't go on."""

    def __init__(self) -> None:
        self._start()

    def judged(self, task: Task) -> Result:
        try:
            result = self._pool.submit(judged, task).result(SECONDS)
        except TimeoutError:
            result = Result(task, "hangs", f"no answer within {SECONDS:.0f} s")
        except BrokenExecutor:
            result = Result(task, "lost", "the process ended")
        if result.kind not in GOOD:  # an error may have cost it the GPU
            self.end()
            self._start()
        return result

    def end(self) -> None:
        kill(self._pool)

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pool = ProcessPoolExecutor(1, context, initializer=end_with_parent)


def run(tasks: Sequence[Task], jobs: int) -> Iterator[Result]:
    """The results of all tasks, from ``jobs`` workers; a worker takes neighboring schedules, since
    drawing one draws those before it."""
    share = -(-len(tasks) // jobs)
    parts = [tasks[at : at + share] for at in range(0, len(tasks), share)]

    def work(part: Sequence[Task]) -> list[Result]:
        worker = Worker()
        try:
            return [worker.judged(task) for task in part]
        finally:
            worker.end()

    with ThreadPoolExecutor(jobs) as pool:
        yield from chain.from_iterable(pool.map(work, parts))


def main(arguments: Sequence[str] | None = None) -> int:
    """0 if every schedule was right (or refused), else 1."""
    parser = argparse.ArgumentParser(prog="python -m tests.gpu.campaign", description=__doc__)
    parser.add_argument("--seed", type=int, action="append", required=True, help="repeatable")
    parser.add_argument("--count", type=int, default=300, help="schedules of each seed")
    parser.add_argument("--jobs", type=int, default=12, help="processes")
    parser.add_argument("--host", action="store_true", help="compare bits with the CPU run, too")
    asked = parser.parse_args(arguments)
    tasks = [Task(s, index, asked.host) for s in asked.seed for index in range(asked.count)]
    began, kinds, calls = time.monotonic(), Counter[str](), 0
    for result in run(tasks, asked.jobs):
        kinds[result.kind] += 1
        calls += result.calls[0]
        if result.kind not in GOOD:
            print(f"{result.task.replay}: {result.kind}: {result.detail[:400]}", flush=True)
    reported = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
    seconds = time.monotonic() - began
    print(f"{len(tasks)} schedules: {reported}; {calls} calls on the GPU; {seconds:.0f} s")
    return int(any(kind not in GOOD for kind in kinds))


if __name__ == "__main__":
    raise SystemExit(main())
