"""Machines that take turns: what the warps of a block do that run different programs.

Each machine has a host thread of its own, of which one runs at a time.  The turn is handed on at
waits alone, to the first machine that can go on, in an order that is chosen.  If none can, the
program hangs: a ``Trap`` says who waits for what.
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
class _Turn:
    """A machine: how it is told to go on, and what it waits for before it can."""

    name: str
    run: Callable[[], None]
    go: Semaphore = field(default_factory=lambda: Semaphore(0))
    waits: Waiting | None = None
    is_done: bool = False

    @property
    def can_go_on(self) -> bool:
        return not self.is_done and (self.waits is None or self.waits.ready())


class Turns:
    """The machines of some blocks, by name; ``order`` is whose turn it is if several can go on:
    the first of them, the last, or any."""

    def __init__(self, order: Order = "ascending"):
        self._order: Order = order
        self._dice = random.Random(0)
        self._back = Semaphore(0)
        self._turns: list[_Turn] = []
        self._now: _Turn | None = None
        self._failure: BaseException | None = None
        self._is_over = False

    def run(self, machines: Sequence[tuple[str, Callable[[], None]]]) -> None:
        """Until all are done.  Raises what one raises; ``Trap`` if none can go on."""
        if len(machines) == 1:
            _, run = machines[0]
            run()
            return
        self._turns = [_Turn(name, run) for name, run in machines]
        hosts = [Thread(target=self._host, args=(turn,), daemon=True) for turn in self._turns]
        for host in hosts:
            host.start()
        try:
            while not all(turn.is_done for turn in self._turns):
                self._hand_on(self._next())
        finally:
            self._is_over = True
            for turn, host in zip(self._turns, hosts, strict=True):
                turn.go.release()
                host.join()

    def wait(self, waiting: Waiting) -> None:
        """Called by a machine: hands the turn on until it is ``ready``."""
        turn = self._now
        if turn is None:
            if not waiting.ready():
                raise _hang([("the block", waiting)])
            return
        turn.waits = waiting
        self._back.release()
        turn.go.acquire()
        if self._is_over:
            raise _Over
        turn.waits = None

    def _hand_on(self, turn: _Turn) -> None:
        self._now = turn
        turn.go.release()
        self._back.acquire()
        if self._failure is not None:
            raise self._failure

    def _next(self) -> _Turn:
        able = [turn for turn in self._turns if turn.can_go_on]
        if not able:
            raise _hang([(t.name, t.waits) for t in self._turns if t.waits is not None])
        if self._order == "shuffled":
            return self._dice.choice(able)
        return able[0 if self._order == "ascending" else -1]

    def _host(self, turn: _Turn) -> None:
        turn.go.acquire()
        try:
            if not self._is_over:
                with np.errstate(all="ignore"):
                    turn.run()
        except _Over:
            pass
        except BaseException as failure:  # handed to the thread that called ``run``
            self._failure = failure
        turn.is_done, turn.waits = True, None
        self._back.release()


def _hang(waits: list[tuple[str, Waiting]]) -> Trap:
    """Nobody can go on."""
    _, first = waits[0]
    found = "; ".join(f"{name} waits for {waiting.what()}" for name, waiting in waits)
    return Trap(first.barrier, first.thread, first.index, f"no thread can go on: {found}")
