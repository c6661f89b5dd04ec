"""The scheduler of machines: warps of a block that run different programs.

Each machine has its own host thread, and one of them runs at a time.  It passes control only at
waits, to the first machine that can continue, in a chosen order.  If none can, the program hangs:
a ``Trap`` says who waits for what.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import Semaphore, Thread

import numpy as np

from gemmgen.base.record import record
from gemmgen.calling.launches import Order
from gemmgen.interpreter.simt import Trap


@record
class Waiting:
    """What a machine waits for."""

    ready: Callable[[], bool]
    barrier: str
    index: int
    thread: str
    """The first that waits, as a message names it."""
    what: Callable[[], str]
    """The barrier, the phase and what is missing."""


class _Over(BaseException):
    """Another machine failed."""


@dataclass
class _Task:
    """A machine: how it is resumed, and what it waits for before it can."""

    name: str
    run: Callable[[], None]
    go: Semaphore = field(default_factory=lambda: Semaphore(0))
    waits: Waiting | None = None
    is_done: bool = False

    @property
    def can_go_on(self) -> bool:
        return not self.is_done and (self.waits is None or self.waits.ready())


class Scheduler:
    """The machines of some blocks, by name; ``order`` is which one runs if several can go on:
    the first of them, the last, or any."""

    def __init__(self, order: Order = "ascending"):
        self._order: Order = order
        self._dice = random.Random(0)
        self._back = Semaphore(0)
        self._tasks: list[_Task] = []
        self._now: _Task | None = None
        self._failure: BaseException | None = None
        self._is_over = False

    def run(self, machines: Sequence[tuple[str, Callable[[], None]]]) -> None:
        """Until all are done.  Raises what one raises; ``Trap`` if none can go on."""
        if len(machines) == 1:
            _, run = machines[0]
            run()
            return
        self._tasks = [_Task(name, run) for name, run in machines]
        hosts = [Thread(target=self._host, args=(task,), daemon=True) for task in self._tasks]
        for host in hosts:
            host.start()
        try:
            while not all(task.is_done for task in self._tasks):
                self._resume(self._next())
        finally:
            self._is_over = True
            for task, host in zip(self._tasks, hosts, strict=True):
                task.go.release()
                host.join()

    def wait(self, waiting: Waiting) -> None:
        """Called by a machine: passes control on until it is ``ready``."""
        task = self._now
        if task is None:
            if not waiting.ready():
                raise _hang([("the block", waiting)])
            return
        task.waits = waiting
        self._back.release()
        task.go.acquire()
        if self._is_over:
            raise _Over
        task.waits = None

    def _resume(self, task: _Task) -> None:
        self._now = task
        task.go.release()
        self._back.acquire()
        if self._failure is not None:
            raise self._failure

    def _next(self) -> _Task:
        able = [task for task in self._tasks if task.can_go_on]
        if not able:
            raise _hang([(t.name, t.waits) for t in self._tasks if t.waits is not None])
        if self._order == "shuffled":
            return self._dice.choice(able)
        return able[0 if self._order == "ascending" else -1]

    def _host(self, task: _Task) -> None:
        task.go.acquire()
        try:
            if not self._is_over:
                with np.errstate(all="ignore"):
                    task.run()
        except _Over:
            pass
        except BaseException as failure:  # handed to the thread that called ``run``
            self._failure = failure
        task.is_done, task.waits = True, None
        self._back.release()


def _hang(waits: list[tuple[str, Waiting]]) -> Trap:
    """No thread can go on."""
    _, first = waits[0]
    found = "; ".join(f"{name} waits for {waiting.what()}" for name, waiting in waits)
    return Trap(first.barrier, first.thread, first.index, f"no thread can go on: {found}")
