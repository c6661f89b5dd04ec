"""A runner in a process of its own, which is restarted if a kernel crashes or blocks it.

A kernel that writes out of bounds leaves its process without a usable GPU, one that never ends
blocks it.  A search survives both.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import Literal, TypeVar, cast

from gemmgen.base.errors import CannotCheck, GemmgenError
from gemmgen.base.processes import serve_quietly
from gemmgen.explore.tune.measuring import Candidate, DeviceInfo, Reading, Rejection, Runner, Screen
from gemmgen.gpu import device

T = TypeVar("T")
PATIENCE, BEGINNING = 120.0, 120.0
"""Timeouts in seconds: for an answer, and for the start of the process."""
Answer = tuple[Literal["done", "refused", "lost"], object]


class Lost(Exception):
    """The runner's process ended, or does not answer; the message says which."""


def require_gpu() -> None:
    """Raises ``CannotCheck`` if this machine cannot launch kernels."""
    device.cupy()


class RemoteRunner:
    """The ``Runner`` that ``make`` returns, in another process.

    The process starts at once, and the first request waits for it.  Raises ``CannotCheck`` if
    ``make`` raises a ``GemmgenError``: there is no GPU, say.
    """

    def __init__(self, make: Callable[[], Runner], patience: float = PATIENCE):
        self._make, self._patience = make, patience
        self._context = multiprocessing.get_context("spawn")
        self._device_info: DeviceInfo | None = None
        self._start()

    @property
    def device_info(self) -> DeviceInfo:
        if self._device_info is None:
            self._device_info = self._greeting()
        return self._device_info

    def check(self, candidates: Sequence[Candidate]) -> tuple[Rejection | None, ...]:
        def ask(some: Sequence[Candidate]) -> tuple[Rejection | None, ...]:
            return cast(tuple[Rejection | None, ...], self._ask("check", tuple(some)))

        return self._one_by_one(candidates, ask, lambda candidate, finding: finding)

    def time(
        self, candidates: Sequence[Candidate], rounds: int, screen: Screen | None = None
    ) -> tuple[Reading, ...]:
        def ask(some: Sequence[Candidate]) -> tuple[Reading, ...]:
            return cast(tuple[Reading, ...], self._ask("time", tuple(some), rounds, screen))

        return self._one_by_one(candidates, ask, lambda c, f: Reading(c.number, finding=f))

    def prove(self, candidate: Candidate, text: str) -> Rejection | None:
        try:
            return cast(Rejection | None, self._ask("prove", candidate, text))
        except Lost as lost:
            return Rejection("crashed", str(lost))

    def end(self) -> None:
        """Ends the process, whatever it is doing."""
        self._process.kill()
        self._connection.close()

    def _one_by_one(
        self,
        candidates: Sequence[Candidate],
        ask: Callable[[Sequence[Candidate]], tuple[T, ...]],
        crashed: Callable[[Candidate, Rejection], T],
    ) -> tuple[T, ...]:
        """All in one request; if that crashes, each alone, to find the culprit."""
        try:
            return ask(candidates)
        except Lost as lost:
            if len(candidates) == 1:
                return (crashed(candidates[0], Rejection("crashed", str(lost))),)
        return tuple(one for c in candidates for one in self._one_by_one((c,), ask, crashed))

    def _ask(self, question: str, *arguments: object) -> object:
        assert self.device_info
        try:
            self._connection.send((question, arguments))
            kind, answer = self._answer(self._patience)
        except (OSError, EOFError):
            kind, answer = "lost", "the GPU's process ended"
        if kind == "done":
            return answer
        if kind == "refused":
            raise CannotCheck(str(answer))
        self._start()
        self._greeting()
        raise Lost(str(answer))

    def _answer(self, patience: float) -> Answer:
        if not self._connection.poll(patience):
            self._process.kill()
            return "lost", f"no answer within {patience:.0f} s"
        return cast(Answer, self._connection.recv())

    def _start(self) -> None:
        ours, theirs = self._context.Pipe()
        self._connection = ours
        self._process = self._context.Process(target=serve, args=(theirs, self._make), daemon=True)
        self._process.start()
        theirs.close()

    def _greeting(self) -> DeviceInfo:
        try:
            kind, answer = self._answer(BEGINNING)
        except (OSError, EOFError):
            kind, answer = "lost", "it ended"
        if kind == "refused":
            raise CannotCheck(str(answer))
        if kind == "lost":
            raise CannotCheck(f"the process that measures could not be started: {answer}")
        assert isinstance(answer, DeviceInfo)
        return answer


def serve(connection: Connection, make: Callable[[], Runner]) -> None:
    """The process: a greeting, then an answer to each request until the connection ends."""
    serve_quietly()
    try:
        runner = make()
        connection.send(("done", runner.device_info))
        while True:
            connection.send(("done", _answered(runner, *connection.recv())))
    except GemmgenError as error:
        connection.send(("refused", str(error)))
    except EOFError:
        return
    except Exception as error:  # CUDA's errors: this process can't use the GPU any more
        connection.send(("lost", f"{type(error).__name__}: {error}"))


def _answered(runner: Runner, question: str, arguments: tuple[object, ...]) -> object:
    match question, arguments:
        case "check", (candidates,):
            return runner.check(cast(Sequence[Candidate], candidates))
        case "time", (candidates, rounds, screen):
            return runner.time(
                cast(Sequence[Candidate], candidates),
                cast(int, rounds),
                cast(Screen | None, screen),
            )
        case "prove", (candidate, text):
            return runner.prove(cast(Candidate, candidate), cast(str, text))
        case _:
            raise AssertionError(question)
