"""Points compiled to cubins, in worker processes, each distinct code once.

The cubins of a search are in the temporary folder of its workers: thousands of them would only
fill the cache.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from gemmgen.base.errors import GemmgenError
from gemmgen.base.record import record
from gemmgen.base.source import Source
from gemmgen.explore.tune.legal_points import SearchPoint
from gemmgen.explore.tune.measuring import Candidate
from gemmgen.explore.tune.workers import Workers
from gemmgen.gpu import compiler
from gemmgen.gpu.store import Stored
from gemmgen.pipeline import compile_source


@record
class Built:
    """A compiled point: ``code`` is equal for texts that differ in nothing but comments.

    ``candidate`` is None if it did not compile, and ``reason`` says why.
    """

    number: int
    code: str = ""
    candidate: Candidate | None = None
    registers: int | None = None
    spills: int | None = None
    reason: str = ""


class Builder(Protocol):
    """Compiles the points of a search."""

    def submit(self, points: Sequence[SearchPoint]) -> Callable[[], tuple[Built, ...]]:
        """Begins to compile ``points``; calling the result waits for them, in their order."""
        ...


class CompilingBuilder:
    """Compiles in the processes of ``workers``, into their folder, for ``arch`` or, of the same
    number, the target of a schedule that runs on it alone (sm_90a on sm_90)."""

    def __init__(self, workers: Workers, arch: str):
        self._workers, self._arch, self._folder = workers, arch, workers.folder
        self._cancelled = 0

    def submit(self, points: Sequence[SearchPoint]) -> Callable[[], tuple[Built, ...]]:
        jobs = [
            self._workers.submit(
                _build, point.number, point.text, self._arch, self._folder, self._ended
            )
            for point in points
        ]

        def wait() -> tuple[Built, ...]:
            return tuple(
                self._workers.result(job) or Built(point.number, reason="the compiler crashed")
                for job, point in zip(jobs, points, strict=True)
            )

        return wait

    def cancel(self) -> None:
        """Gives up what was submitted and has not begun: its results must not be waited for.

        A file tells the processes: a cancelled future breaks a pool that is ended with it.
        """
        self._ended.touch()
        self._cancelled += 1

    @property
    def _ended(self) -> Path:
        """Exists once the points that are submitted now are cancelled."""
        return self._folder / f"cancelled-{self._cancelled}"


def code_of(text: str) -> str:
    """A hash of a kernel's code: its emitted text without comment lines."""
    lines = (line for line in text.splitlines() if not line.lstrip().startswith("//"))
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:24]


def code_at(text: str) -> str:
    """The same for the schedule ``text``."""
    return code_of(compile_source(Source(text)).text)


def _build(number: int, text: str, arch: str, folder: Path, ended: Path) -> Built:
    """In a worker: compiles the schedule ``text`` and writes cubin and source to ``folder``; not if
    ``ended`` exists."""
    if ended.exists():
        return Built(number, reason="cancelled")
    emitted = compile_source(Source(text))
    code = code_of(emitted.text)
    try:
        exact = emitted.target if emitted.target[:-1] == arch else arch
        compiled = compiler.compile_text(emitted.text, exact)
    except GemmgenError as error:
        return Built(number, code, reason=str(error))
    files = Stored(folder / f"{code}.cubin", folder / f"{code}.cu")
    for path, data in ((files.cubin, compiled.cubin), (files.source, emitted.text.encode())):
        draft = path.with_name(f"{path.name}.{os.getpid()}")
        draft.write_bytes(data)
        draft.replace(path)
    candidate = Candidate(number, emitted.interface, emitted.target, files)
    return Built(number, code, candidate, compiled.registers, compiled.spills)
