"""A runner on the GPUs of a cluster's workers: each question about kernels is a task.

The first timings and checks of a batch are shared among the GPUs: they are relative to cuBLAS on
the same GPU.  A race is one task, so that its kernels and cuBLAS alternate on one GPU.  If a task
is lost, each of its kernels is tried alone, which finds the one that ends or blocks its process.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol, TypeVar, cast

from gemmgen.base import temporary
from gemmgen.base.cluster_tasks import ClusterTask, TaskOutcome
from gemmgen.base.errors import CannotCheck, GemmgenError, UsageError
from gemmgen.base.record import record
from gemmgen.explore.tune.measuring import Candidate, DeviceInfo, Reading, Rejection, Runner, Screen
from gemmgen.gpu.store import Stored

T = TypeVar("T")

PATIENCE = 240.0
"""Seconds for a task; the first one on a worker makes arrays and reference results, too."""

Make = Callable[[], Runner]
"""Makes a runner on a worker; it is pickled."""


@record
class SentKernel:
    """A candidate with its files, which other machines do not have."""

    candidate: Candidate
    cubin: bytes
    source: bytes


@record
class MeasuredAnswer:
    """A runner's answer, and its GPU."""

    device_info: DeviceInfo
    answer: object


@record
class _Lost:
    reason: str


class GpuWorkers(Protocol):
    """The workers with a GPU: ``DaskCluster``."""

    def count(self) -> int: ...

    def outcomes(
        self, tasks: Iterable[ClusterTask[MeasuredAnswer]]
    ) -> Generator[TaskOutcome[MeasuredAnswer]]: ...


class ClusterRunner:
    """The ``Runner`` that ``make`` returns, on each of the ``workers``.

    Raises ``CannotCheck`` if ``make`` raises a ``GemmgenError``, and ``UsageError`` if the workers
    have different GPUs: their times are not comparable.
    """

    def __init__(self, workers: GpuWorkers, make: Make, seconds: float = PATIENCE):
        self._workers, self._make, self._seconds = workers, make, seconds
        self._device_info: DeviceInfo | None = None

    @property
    def device_info(self) -> DeviceInfo:
        if self._device_info is None:
            (answer,) = self._ask("", [()])
            if isinstance(answer, _Lost):
                raise CannotCheck(f"no worker could begin to measure: {answer.reason}")
        assert self._device_info is not None
        return self._device_info

    def check(self, candidates: Sequence[Candidate]) -> tuple[Rejection | None, ...]:
        def crashed(_: Candidate, finding: Rejection) -> Rejection | None:
            return finding

        return self._each(candidates, self._workers.count(), crashed, "check")

    def time(
        self, candidates: Sequence[Candidate], rounds: int, screen: Screen | None = None
    ) -> tuple[Reading, ...]:
        def crashed(candidate: Candidate, finding: Rejection) -> Reading:
            return Reading(candidate.number, finding=finding)

        parts = 1 if screen is None else self._workers.count()
        return self._each(candidates, parts, crashed, "time", rounds, screen)

    def prove(self, candidate: Candidate, text: str) -> Rejection | None:
        (answer,) = self._ask("prove", [(candidate,)], text)
        if isinstance(answer, _Lost):
            return Rejection("crashed", answer.reason)
        return cast(Rejection | None, answer)

    def change(self, make: Make) -> None:
        """From now on, on the same workers, the runner that ``make`` returns."""
        self._make = make

    def end(self) -> None:
        """Nothing is left to end: the cluster is its owner's."""

    def _each(
        self,
        candidates: Sequence[Candidate],
        parts: int,
        crashed: Callable[[Candidate, Rejection], T],
        question: str,
        *arguments: object,
    ) -> tuple[T, ...]:
        """The answers for all, asked in ``parts`` tasks; those of a lost task are asked alone."""
        several = _shared(candidates, parts)
        found: list[T] = []
        for some, answer in zip(several, self._ask(question, several, *arguments), strict=True):
            if not isinstance(answer, _Lost):
                found += cast(tuple[T, ...], answer)
            elif len(some) == 1:
                found.append(crashed(some[0], Rejection("crashed", answer.reason)))
            else:
                found += self._each(some, len(some), crashed, question, *arguments)
        return tuple(found)

    def _ask(
        self, question: str, several: Sequence[Sequence[Candidate]], *arguments: object
    ) -> list[object]:
        """The answers of a task for each of ``several``, in their order; ``_Lost`` for some."""
        tasks = [
            ClusterTask(
                f"{question} {', '.join(str(candidate.number) for candidate in some)}",
                partial(measure, self._make, question, tuple(map(_sent, some)), arguments),
                self._seconds,
                spoils=True,
            )
            for some in several
        ]
        found: dict[int, object] = {}
        with closing(self._workers.outcomes(tasks)) as outcomes:
            for outcome in outcomes:
                if outcome.error is not None:
                    raise outcome.error
                if outcome.value is None:
                    found[outcome.number] = _Lost(outcome.lost)
                    continue
                self._check_gpu(outcome.value.device_info)
                found[outcome.number] = outcome.value.answer
        return [found[number] for number in range(len(tasks))]

    def _check_gpu(self, info: DeviceInfo) -> None:
        if self._device_info is None:
            self._device_info = info
        first = self._device_info.name
        if info.name != first:
            raise UsageError(
                f"the workers have different GPUs, {first} and {info.name}, whose times can't be "
                "compared: tune on workers with one kind"
            )


def _shared(candidates: Sequence[Candidate], parts: int) -> list[Sequence[Candidate]]:
    """At most ``parts`` runs of neighbors of about equal lengths, none empty."""
    size = -(-len(candidates) // max(1, parts))
    return [candidates[at : at + size] for at in range(0, len(candidates), size or 1)]


def _sent(candidate: Candidate) -> SentKernel:
    files = candidate.files
    return SentKernel(candidate, files.cubin.read_bytes(), files.source.read_bytes())


# On a worker.

_runners: dict[bytes, Runner] = {}


def measure(
    make: Make, question: str, kernels: tuple[SentKernel, ...], arguments: tuple[object, ...]
) -> MeasuredAnswer:
    """Asks the runner that ``make`` returns, which is kept for the next question."""
    key = pickle.dumps(make)
    try:
        if key not in _runners:
            _runners.clear()  # another one's arrays leave the GPU first
            _runners[key] = make()
        runner, here = _runners[key], tuple(map(_placed, kernels))
        match question:
            case "":
                answer = None
            case "prove":
                answer = runner.prove(here[0], *cast(tuple[str], arguments))
            case _:
                answer = getattr(runner, question)(here, *arguments)
    except GemmgenError as error:
        raise CannotCheck(str(error)) from None
    return MeasuredAnswer(runner.device_info, answer)


@cache
def _folder() -> TemporaryDirectory[str]:
    return temporary.folder("tune-")


def _placed(kernel: SentKernel) -> Candidate:
    """The candidate with files on this machine."""
    name = hashlib.sha256(kernel.cubin + kernel.source).hexdigest()[:24]
    folder = Path(_folder().name)
    files = Stored(folder / f"{name}.cubin", folder / f"{name}.cu")
    if not files.source.exists():
        files.cubin.write_bytes(kernel.cubin)
        files.source.write_bytes(kernel.source)
    return replace(kernel.candidate, files=files)
