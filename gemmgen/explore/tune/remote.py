"""A lab in a process of its own, which a kernel may bring down, and which is then begun anew.

A kernel that writes where it may not leaves its process without a usable GPU, one that never ends
blocks it.  Neither may cost a search what it has found.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import Literal, TypeVar, cast

from gemmgen.base.errors import CannotCheck, GemmgenError
from gemmgen.base.processes import serve_quietly
from gemmgen.explore.tune.measuring import Candidate, Here, Lab, Reading, Rejection, Screen
from gemmgen.gpu import device

T = TypeVar("T")
PATIENCE, BEGINNING = 120.0, 120.0
"""Seconds until a process that does not answer is taken for lost, and one that is to begin."""
Answer = tuple[Literal["done", "refused", "lost"], object]


class Lost(Exception):
    """The lab's process ended, or does not answer; the message says which."""


def require_gpu() -> None:
    """Raises ``CannotCheck`` where no kernel can be launched from this machine."""
    device.cupy()


class RemoteLab:
    """A ``Lab`` that ``make`` makes, in another process.

    It begins at once, and the first question waits for it.  Raises ``CannotCheck`` where ``make``
    raises a ``GemmgenError``: there is no GPU, say.
    """

    def __init__(self, make: Callable[[], Lab], patience: float = PATIENCE):
        self._make, self._patience = make, patience
        self._context = multiprocessing.get_context("spawn")
        self._here: Here | None = None
        self._start()

    @property
    def here(self) -> Here:
        if self._here is None:
            self._here = self._greeting()
        return self._here

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
        """All at once; where that is lost each alone, to know the one to blame."""
        try:
            return ask(candidates)
        except Lost as lost:
            if len(candidates) == 1:
                return (crashed(candidates[0], Rejection("crashed", str(lost))),)
        return tuple(one for c in candidates for one in self._one_by_one((c,), ask, crashed))

    def _ask(self, question: str, *arguments: object) -> object:
        assert self.here
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

    def _greeting(self) -> Here:
        try:
            kind, answer = self._answer(BEGINNING)
        except (OSError, EOFError):
            kind, answer = "lost", "it ended"
        if kind == "refused":
            raise CannotCheck(str(answer))
        if kind == "lost":
            raise CannotCheck(f"the process that measures could not be started: {answer}")
        assert isinstance(answer, Here)
        return answer


def serve(connection: Connection, make: Callable[[], Lab]) -> None:
    """The process: a greeting, then an answer to each question until the connection ends."""
    serve_quietly()
    try:
        lab = make()
        connection.send(("done", lab.here))
        while True:
            connection.send(("done", _answered(lab, *connection.recv())))
    except GemmgenError as error:
        connection.send(("refused", str(error)))
    except EOFError:
        return
    except Exception as error:  # CUDA's errors: this process can't use the GPU any more
        connection.send(("lost", f"{type(error).__name__}: {error}"))


def _answered(lab: Lab, question: str, arguments: tuple[object, ...]) -> object:
    match question, arguments:
        case "check", (candidates,):
            return lab.check(cast(Sequence[Candidate], candidates))
        case "time", (candidates, rounds, screen):
            return lab.time(
                cast(Sequence[Candidate], candidates),
                cast(int, rounds),
                cast(Screen | None, screen),
            )
        case "prove", (candidate, text):
            return lab.prove(cast(Candidate, candidate), cast(str, text))
        case _:
            raise AssertionError(question)
