"""A runner in its own process, which is restarted if a kernel crashes or blocks it.

A kernel that writes out of bounds leaves its process without a usable GPU, one that never ends
blocks it.  A search survives both.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from itertools import chain
from typing import TypeVar, cast

from gemmgen.base.errors import CannotCheck, GemmgenError
from gemmgen.base.processes import interrupts_held, kill, serve_quietly
from gemmgen.explore.tune.measuring import Candidate, DeviceInfo, Reading, Rejection, Runner, Screen

T = TypeVar("T")
PATIENCE, BEGINNING = 120.0, 120.0
"""Timeouts in seconds: for an answer, and for the start of the process."""


class Lost(Exception):
    """The runner's process ended, can't use the GPU any more, or does not answer; the message says
    which."""


class RemoteRunner:
    """The ``Runner`` that ``make`` returns, in another process.

    The process starts at once, and the first request waits for it.  Raises ``CannotCheck`` if
    ``make`` raises a ``GemmgenError``: there is no GPU, say.
    """

    def __init__(self, make: Callable[[], Runner], patience: float = PATIENCE):
        self._make, self._patience = make, patience
        self._device_info: DeviceInfo | None = None
        self._start()

    @property
    def device_info(self) -> DeviceInfo:
        if self._device_info is None:
            self._device_info = self._greeting()
        return self._device_info

    def check(self, candidates: Sequence[Candidate]) -> tuple[Rejection | None, ...]:
        return self._one_by_one(candidates, lambda _, finding: finding, "check")

    def time(
        self, candidates: Sequence[Candidate], rounds: int, screen: Screen | None = None
    ) -> tuple[Reading, ...]:
        def crashed(candidate: Candidate, finding: Rejection) -> Reading:
            return Reading(candidate.number, finding=finding)

        return self._one_by_one(candidates, crashed, "time", rounds, screen)

    def prove(self, candidate: Candidate, text: str) -> Rejection | None:
        try:
            return cast(Rejection | None, self._ask("prove", candidate, text))
        except Lost as lost:
            return Rejection("crashed", str(lost))

    def change(self, make: Callable[[], Runner]) -> None:
        """From now on, in the same process, the runner that ``make`` returns."""
        self._make, self._device_info, self._is_new = make, None, False
        try:
            with interrupts_held():
                self._begun = self._pool.submit(_begin, make)
        except BrokenExecutor:  # the process ended meanwhile
            self._restart()

    def end(self) -> None:
        """Ends the process, whatever it is doing."""
        kill(self._pool)

    def _one_by_one(
        self,
        candidates: Sequence[Candidate],
        crashed: Callable[[Candidate, Rejection], T],
        question: str,
        *more: object,
    ) -> tuple[T, ...]:
        """All in one request; if that crashes, each alone, to find the culprit."""
        try:
            return cast(tuple[T, ...], self._ask(question, tuple(candidates), *more))
        except Lost as lost:
            if len(candidates) == 1:
                return (crashed(candidates[0], Rejection("crashed", str(lost))),)
        alone = (self._one_by_one((c,), crashed, question, *more) for c in candidates)
        return tuple(chain.from_iterable(alone))

    def _ask(self, question: str, *arguments: object) -> object:
        assert self.device_info
        try:
            return _answer(self._pool.submit(_answered, question, arguments), self._patience)
        except Lost:
            self._restart()
            self._greeting()
            raise

    def _restart(self) -> None:
        self.end()
        self._start()

    def _start(self) -> None:
        self._is_new = True
        context = multiprocessing.get_context("spawn")
        self._pool = ProcessPoolExecutor(1, context, initializer=serve_quietly)
        with interrupts_held():
            self._begun = self._pool.submit(_begin, self._make)

    def _greeting(self) -> DeviceInfo:
        try:
            return _answer(self._begun, BEGINNING)
        except Lost as lost:
            if not self._is_new:  # the process may have ended before its runner was changed
                self._restart()
                return self._greeting()
            what = f"the process that measures could not be started: {lost}"
            raise CannotCheck(what) from None


def _answer(future: Future[T], patience: float) -> T:
    try:
        return future.result(patience)
    except TimeoutError:
        raise Lost(f"no answer within {patience:.0f} s") from None
    except BrokenExecutor:
        raise Lost("the GPU's process ended") from None


# In the process.

_runners: list[Runner] = []


def _begin(make: Callable[[], Runner]) -> DeviceInfo:
    _runners.clear()  # another one's arrays leave the GPU first
    _runners.append(_sendable(make))
    return _runners[0].device_info


def _answered(question: str, arguments: tuple[object, ...]) -> object:
    return _sendable(lambda: getattr(_runners[0], question)(*arguments))


def _sendable(do: Callable[[], T]) -> T:
    """What ``do`` returns; its errors as ones that another process can read."""
    try:
        return do()
    except GemmgenError as error:
        raise CannotCheck(str(error)) from None
    except Exception as error:  # CUDA's errors: this process can't use the GPU any more
        raise Lost(f"{type(error).__name__}: {error}") from None
